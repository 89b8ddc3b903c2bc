-- A session with binlog_format = STATEMENT logs its temporary tables as if they were others: what it does to one that
-- hides a table of the same name stops the producer, also where it was made before the stream begins.
-- @profile producer filters.include_dbs = ["temporary_tables"]
-- @differs
CREATE DATABASE temporary_tables;
USE temporary_tables;
CREATE TABLE base (i INT PRIMARY KEY, c INT);
SET binlog_format = STATEMENT;
CREATE TEMPORARY TABLE base (i INT, c INT);
-- @start
TRUNCATE base;
SHOW BINARY LOG STATUS;
-- @as file
-- @apply
-- @stops cdc-producer 3 on a temporary table
-- @stops cdc-producer 3 at {file}:
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @run cdc-producer --skip {skip}
ALTER TABLE base DROP COLUMN c;
-- @apply
-- @stops cdc-producer 3 on a temporary table
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
CREATE INDEX k ON base (i);
-- @apply
-- @stops cdc-producer 3 on a temporary table
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
CREATE TABLE new LIKE base;
-- @apply
-- @stops cdc-producer 3 whether the table after LIKE was a temporary table
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
ALTER TABLE base RENAME another;
-- @apply
-- @stops cdc-producer 3 on a temporary table
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
CREATE PROCEDURE emptied() BEGIN DROP TABLE IF EXISTS none; TRUNCATE another; END;
CALL emptied();
-- @apply
-- @stops cdc-producer 3 on a temporary table
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
-- A real one, whose engine has no DDL transactions, has no mark that would show it.
CREATE TABLE plain (i INT) ENGINE = MyISAM;
CREATE PROCEDURE emptied2() BEGIN DROP TABLE IF EXISTS none; TRUNCATE plain; END;
CALL emptied2();
-- @apply
-- @stops cdc-producer 3 on a temporary table
-- @stops cdc-producer 3 on a table of InnoDB
-- @run cdc-producer --skip {skip}
CREATE PROCEDURE likewise() BEGIN DROP TABLE IF EXISTS none; CREATE TABLE made LIKE plain; END;
CALL likewise();
-- @apply
-- @stops cdc-producer 3 whether the table after LIKE was a temporary table
-- @stops cdc-producer 3 with the definition in place of LIKE
-- @run cdc-producer --skip {skip}
CREATE TEMPORARY TABLE base (i INT);
-- @apply
-- @stops cdc-producer 3 created a temporary table
-- @stops cdc-producer 3 at {file}:
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @profile producer filters.include_dbs = ["none_of_all"]
-- @run cdc-producer
