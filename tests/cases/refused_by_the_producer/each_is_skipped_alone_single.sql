-- Each refused event can be skipped and nothing else, in one topic; the others of its transaction are applied.
-- @profile both kafka.layout = "single"
-- @profile both kafka.prefix = "skip_single."
-- @profile producer filters.include_dbs = ["skip_single"]
-- @differs skip_single.base skip_single.q
CREATE DATABASE skip_single;
-- -> {}
USE skip_single;
CREATE TABLE base (i INT PRIMARY KEY, c INT, j JSON);
-- -> {}
INSERT INTO base VALUES (1, 1, '{"a": 1, "b": "a long enough text to be left in its place"}');
-- -> {}
CREATE TABLE p (s SET('a', 'b'), i INT PRIMARY KEY);
-- -> {}
CREATE TABLE q (i INT);
-- -> {}
-- @run cdc-producer
SET binlog_format = STATEMENT;
BEGIN;
UPDATE base SET c = LENGTH('secret') WHERE i = 1;
COMMIT;
-- -> {"operation":{"Skipped":{"event":"Query","place":"{skip1}"}},"affects":[{"action":"SkipTable","uri":"flv://mysql-srv1/skip_single/base"}],"transaction":{"index":0}}
SET binlog_format = ROW, binlog_row_value_options = PARTIAL_JSON;
BEGIN;
INSERT INTO base VALUES (10, 10, NULL);
-- -> {"operation":{"Add":{}}}
UPDATE base SET j = JSON_SET(j, '$.a', 2);
-- -> {"operation":{"Skipped":{"event":"PartialUpdateRows","place":"{skip2}"}},"affects":[{"action":"SkipTable","uri":"flv://mysql-srv1/skip_single/base"}],"transaction":{"index":1}}
INSERT INTO base VALUES (11, 11, NULL);
-- -> {"operation":{"Add":{}}}
COMMIT;
-- Inside of a compressed transaction, too.
SET binlog_transaction_compression = ON;
BEGIN;
INSERT INTO base VALUES (12, 12, NULL);
-- -> {"operation":{"Add":{}}}
UPDATE base SET j = JSON_SET(j, '$.a', 3);
-- -> {"operation":{"Skipped":{"event":"PartialUpdateRows","place":"{skip4}"}},"affects":[{"action":"SkipTable","uri":"flv://mysql-srv1/skip_single/base"}],"transaction":{"index":1}}
INSERT INTO base VALUES (13, 13, NULL);
-- -> {"operation":{"Add":{}}}
COMMIT;
SET binlog_transaction_compression = OFF, binlog_row_value_options = '';
ALTER TABLE q ADD id INT DEFAULT (CONNECTION_ID());
-- -> {"operation":{"Skipped":{"event":"Query","place":"{skip5}"}},"affects":[{"action":"SkipTable","uri":"flv://mysql-srv1/skip_single/q"}],"transaction":{"index":0}}
INSERT INTO base VALUES (14, 14, NULL);
-- -> {"operation":{"Add":{}}}
-- @run cdc-producer
-- @stops cdc-producer 3 --skip
-- @silent secret
-- @run cdc-producer --skip {skip}
-- @stops cdc-producer 3 --skip
-- @logged event skipped
-- @silent event skipped … event skipped
-- @silent secret
-- What is named without need is refused, and costs nothing.
-- @run cdc-producer --skip binlog.000001:4
-- @stops cdc-producer 2 no event was refused at binlog.000001:4
-- @run cdc-producer --skip {skip2}
-- @stops cdc-producer 3 --skip binlog … /
-- @logged event skipped
-- @silent event skipped … event skipped
-- @run cdc-producer --skip {skip4}
-- @stops cdc-producer 3 --skip
-- @logged event skipped
-- @silent event skipped … event skipped
-- @run cdc-producer --skip {skip5}
-- @logged event skipped
-- @silent event skipped … event skipped
-- @run cdc-producer --skip {skip5}
-- @stops cdc-producer 2 no event was refused at {skip5}, or it is written or skipped already
-- @run cdc-consumer
-- @logged event skipped by the producer … event skipped by the producer … event skipped by the producer … event skipped by the producer
-- @silent event skipped by the producer … event skipped by the producer … event skipped by the producer … event skipped by the producer … event skipped by the producer
-- @run cdc-tail -B
-- @logged  Skipped 
-- @silent secret
-- @follower
SELECT i, c FROM skip_single.base ORDER BY i;
-- = [1, 1]
-- = [10, 10]
-- = [11, 11]
-- = [12, 12]
-- = [13, 13]
-- = [14, 14]
SELECT COUNT(*), SUM(note LIKE 'the producer has left %') FROM cdc.ledger WHERE resource = '{leader}' AND state = 'skipped';
-- = [4, "4"]
