-- In the middle of a stream the leader logs rows without names of columns, and sessions without all columns or with
-- differences of documents. One command reads past that, and copies the tables that were changed meanwhile. A table can
-- be left out instead, until the stream is past that, and is copied when it is let in again.
-- @alone
CREATE DATABASE unreadable;
USE unreadable;
CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9));
CREATE TABLE u (id INT PRIMARY KEY, n INT);
CREATE TABLE bare (v VARCHAR(9));
CREATE TABLE old (id INT PRIMARY KEY);
CREATE TABLE doc (id INT PRIMARY KEY, j JSON);
CREATE TABLE untouched (id INT PRIMARY KEY);
INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');
INSERT INTO u VALUES (1, 1), (2, 2);
INSERT INTO bare VALUES ('a'), ('b');
INSERT INTO old VALUES (1), (2);
INSERT INTO doc VALUES (1, '{"a": 1, "b": "a long enough text to be left in its place"}');
-- @apply
SET GLOBAL binlog_row_metadata = MINIMAL;
UPDATE t SET n = 10 WHERE id = 1;
DELETE FROM t WHERE id = 2;
START TRANSACTION;
INSERT INTO u VALUES (3, 3);
INSERT INTO bare VALUES ('c');
UPDATE u SET n = 30 WHERE id = 3;
INSERT INTO t VALUES (7, 7, 'g');
COMMIT;
INSERT INTO old VALUES (3);
ALTER TABLE old RENAME renamed;
SET GLOBAL binlog_row_metadata = FULL;
SET binlog_row_image = MINIMAL;
UPDATE u SET n = 20 WHERE id = 2;
UPDATE bare SET v = 'x' WHERE v = 'a';
SET binlog_row_image = FULL, binlog_row_value_options = PARTIAL_JSON;
UPDATE doc SET j = JSON_SET(j, '$.a', 3) WHERE id = 1;
SET binlog_row_value_options = '';
INSERT INTO t VALUES (4, 4, 'd');
DELETE FROM bare WHERE v = 'b';
INSERT INTO untouched VALUES (1);
-- @apply
-- @stops cdc-producer 3 table unreadable.t … start cdc-producer PROFILE --copy-unrepeatable
-- @run cdc-producer --copy-unrepeatable
-- @logged cdc-producer rows that can't be read, so their table is copied again table=unreadable.t why="the table map has no column names
-- @logged cdc-producer copied again table=unreadable.u
-- @logged cdc-producer copied again table=unreadable.doc
-- @logged cdc-producer copied a table table=unreadable.renamed
-- @apply
-- @equal
SET GLOBAL binlog_row_metadata = MINIMAL;
INSERT INTO t VALUES (5, 5, 'e');
INSERT INTO u VALUES (5, 5);
-- While the leader logs all rows so, no copy would be the last.
-- @run cdc-producer --copy-unrepeatable
-- @stops cdc-producer 2 binlog_row_metadata is MINIMAL
SET GLOBAL binlog_row_metadata = FULL;
-- @apply
-- @stops cdc-producer 3 add "unreadable.t" to filters.exclude_tables … let in again later is copied
-- @profile producer filters.exclude_tables = ["unreadable.t"]
-- @profile producer producer.on_unrepeatable = "copy"
-- @run cdc-producer
-- @logged cdc-producer copied again table=unreadable.u
-- @apply
-- @profile producer filters.exclude_tables = []
-- @run cdc-producer
-- @logged newly_included=unreadable.t
-- @apply
-- @equal
