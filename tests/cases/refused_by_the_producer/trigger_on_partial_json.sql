-- A BEFORE UPDATE trigger that changes a document, too: the differences in the log don't have its work. And without
-- the privilege to see triggers nobody can say that there is none.
-- @profile producer producer.partial_json = "apply"
CREATE DATABASE trigger_json;
USE trigger_json;
CREATE TABLE t (id INT PRIMARY KEY, j JSON, n INT);
CREATE TABLE q (id INT PRIMARY KEY, j JSON, n INT);
INSERT INTO t VALUES (1, JSON_OBJECT('a', 1, 'padding', REPEAT('x', 400)), 0);
INSERT INTO q SELECT * FROM t;
CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW SET NEW.n = 5, NEW.j = JSON_SET(NEW.j, '$.b', 1);
CREATE TRIGGER y BEFORE UPDATE ON q FOR EACH ROW SET NEW.n = 5, NEW.`J` = JSON_SET(NEW.j, '$.b', 1);
SET binlog_row_value_options = PARTIAL_JSON;
UPDATE t SET n = 1;
UPDATE q SET n = 1;
-- @apply
-- @equal
UPDATE t SET j = JSON_SET(j, '$.a', 2);
-- @apply
-- @stops cdc-producer 3 what trigger x (BEFORE UPDATE)
-- @stops cdc-producer 3 at binlog.0
-- @run cdc-producer --skip {skip}
UPDATE q SET j = JSON_SET(j, '$.a', 2);
-- @apply
-- @stops cdc-producer 3 what trigger y (BEFORE UPDATE)
-- @stops cdc-producer 3 at binlog.0
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS unseeing IDENTIFIED BY 'x';
GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO unseeing;
-- @profile producer database.user = "unseeing"
-- @profile producer database.password = "x"
-- @run cdc-producer
-- @stops cdc-producer 2 TRIGGER is missing; GRANT TRIGGER ON *.* TO 'unseeing'@'%'
DROP USER unseeing;
