-- What the filters leave out passes in any format, as tools for checksums log it, and is told. Where a trigger changes
-- what they let in, its database is in the log, though in no text: that stops the producer.
-- @server leader --secure-file-priv=
-- @profile producer filters.include_dbs = ["inside"]
-- @differs percona inside.base
CREATE DATABASE inside;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/inside"}]}
CREATE TABLE inside.base (i INT PRIMARY KEY, c INT, j JSON);
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/inside/base"}]}
INSERT INTO inside.base VALUES (1, 1, '{"a": 1, "b": "a long enough text to be left in its place"}');
-- -> {"operation":{"Add":{}}}
CREATE DATABASE percona;
USE percona;
CREATE TABLE checksums (k INT PRIMARY KEY, n INT, j JSON);
CREATE TABLE tr (i INT);
CREATE TABLE p (i INT PRIMARY KEY);
CREATE TRIGGER t AFTER INSERT ON tr FOR EACH ROW UPDATE inside.base SET c = 9;
SELECT 5 UNION SELECT 6 INTO OUTFILE 'rows';
SET binlog_format = STATEMENT, @u = 7;
LOAD DATA INFILE 'rows' INTO TABLE p;
REPLACE INTO percona.checksums (k, n) SELECT 1, COUNT(*) FROM inside.base /*checksum table*/;
INSERT INTO checksums VALUES (2, RAND() * 9, NULL);
INSERT INTO checksums VALUES (3, @u, NULL);
UPDATE checksums AS c SET n = 5 WHERE k IN (SELECT i FROM inside.base);
DELETE a FROM checksums a JOIN checksums b USING (k) WHERE a.n = 5;
DELETE FROM mysql.help_topic WHERE help_topic_id = -1;
XA START 'inside';
INSERT INTO p VALUES (1);
XA END 'inside';
XA PREPARE 'inside';
XA COMMIT 'inside';
SET binlog_transaction_compression = ON;
INSERT INTO checksums VALUES (4, RAND() * 9, NULL);
SET binlog_format = ROW, binlog_row_image = MINIMAL, binlog_transaction_compression = OFF;
INSERT INTO checksums VALUES (9, 9, '{"a": 1, "b": "a long enough text to be left in its place"}');
UPDATE checksums SET n = 8 WHERE k = 9;
SET binlog_row_value_options = PARTIAL_JSON, binlog_row_image = FULL;
UPDATE checksums SET j = JSON_SET(j, '$.a', 2);
INSERT INTO inside.base VALUES (2, 2, NULL);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2},{"SignedInteger":2},"Null"]}]}}}
-- @apply
-- @logged cdc-producer change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated
-- @silent cdc-producer change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated … change outside of the filters not replicated
SET binlog_format = STATEMENT;
INSERT INTO tr VALUES (1);
-- -> {"operation":{"Skipped":{}},"affects":[{"action":"SkipTable","uri":"flv://mysql-srv1/percona/tr"},{"action":"SkipDatabase","uri":"flv://mysql-srv1/inside"}]}
-- @apply
-- @stops cdc-producer 3 a change was logged as a statement, not as rows: INSERT INTO tr
-- @stops cdc-producer 3 to skip this event for good: cdc-producer PROFILE --skip
-- @run cdc-producer --skip {skip}
-- @run cdc-consumer
