-- Settings that change while the stream goes on, of the server or of one session: what is logged with them stops the
-- producer at its place, again and again until it is skipped. What came before is out.
-- @alone
-- @differs later.a later.m
CREATE DATABASE later;
-- -> {"sequence":0}
USE later;
CREATE TABLE a (i INT PRIMARY KEY, j JSON, t TEXT);
-- -> {"sequence":1}
INSERT INTO a VALUES (1, '{"a": 1, "b": "a long enough text to be left in its place"}', 't'), (2, '{}', ''), (3, '{}', ''), (4, '{}', ''), (5, '{}', ''), (6, '{}', '');
-- -> {"sequence":2,"operation":{"Add":{}}}
SET binlog_row_image = MINIMAL;
DELETE FROM a WHERE i = 2;
-- -> {"sequence":3,"operation":{"Skipped":{"place":"{skip1}"}}}
SHOW BINARY LOG STATUS;
-- @as file
-- @apply
-- @stops cdc-producer 3 without all its columns
-- @stops cdc-producer 3 SET PERSIST binlog_row_image = FULL
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer
-- @stops cdc-producer 3 --skip {skip1}
-- @run cdc-producer --skip {skip1}
SET binlog_row_image = NOBLOB;
UPDATE a SET i = 9 WHERE i = 3;
-- -> {"sequence":4,"operation":{"Skipped":{}}}
-- @run cdc-producer
-- @stops cdc-producer 3 SET PERSIST binlog_row_image = FULL
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
SET binlog_row_image = FULL, binlog_format = STATEMENT;
INSERT INTO a VALUES (9999, '{}', '');
-- -> {"sequence":5,"operation":{"Skipped":{"place":"{skip4}"}}}
-- @run cdc-producer
-- @stops cdc-producer 3 logged as a statement
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer
-- @stops cdc-producer 3 --skip {skip4}
-- @run cdc-producer --skip {skip4}
DELETE FROM a WHERE i = 4;
-- -> {"sequence":6,"operation":{"Skipped":{}}}
-- @run cdc-producer
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
SET binlog_format = MIXED;
DELETE FROM a WHERE i = 5;
-- -> {"sequence":7,"operation":{"Skipped":{}}}
-- @run cdc-producer
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
SET binlog_format = ROW, binlog_row_image = MINIMAL, binlog_row_value_options = PARTIAL_JSON;
UPDATE a SET j = JSON_SET(j, '$.a', 2) WHERE i = 1;
-- -> {"sequence":8,"operation":{"Skipped":{}}}
-- @run cdc-producer
-- @stops cdc-producer 3 SET PERSIST binlog_row_image = FULL
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
SET binlog_row_image = FULL;
UPDATE a SET j = JSON_SET(j, '$.a', 3) WHERE i = 1;
-- -> {"sequence":9,"operation":{"Skipped":{}}}
-- @run cdc-producer
-- @stops cdc-producer 3 SET PERSIST binlog_row_value_options = ''
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
SET binlog_row_value_options = '';
SET GLOBAL binlog_row_metadata = MINIMAL;
INSERT INTO a VALUES (7, '{}', '');
-- -> {"sequence":10,"operation":{"Skipped":{}}}
SET GLOBAL binlog_row_metadata = FULL;
-- @run cdc-producer
-- @stops cdc-producer 3 binlog_row_metadata = FULL
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
CREATE TABLE b (i INT);
-- -> {"sequence":11,"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/later/b"}]}
