-- What sessions with binlog_format = STATEMENT or MIXED log and a follower can't run: each stops the producer, at its
-- place in the binlog, and can be skipped, or left out by the filters.
-- @profile producer filters.include_dbs = ["by_statement"]
-- @differs by_statement.filled by_statement.listed by_statement.valued by_statement.mixed by_statement.base
CREATE DATABASE by_statement;
USE by_statement;
CREATE TABLE base (i INT PRIMARY KEY, c INT);
SET binlog_format = STATEMENT;
CREATE TABLE filled SELECT UUID() AS u;
SHOW BINARY LOG STATUS;
-- @as file
-- @apply
-- @stops cdc-producer 3 logged as a query
-- @stops cdc-producer 3 at {file}:
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @run cdc-producer --skip {skip}
CREATE TABLE listed (i INT) ENGINE = InnoDB IGNORE AS ((TABLE base));
-- @apply
-- @stops cdc-producer 3 logged as a query
-- @stops cdc-producer 3 at {file}:
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @run cdc-producer --skip {skip}
CREATE TABLE valued (VALUES ROW(1, CONNECTION_ID()));
-- @apply
-- @stops cdc-producer 3 logged as a query
-- @stops cdc-producer 3 at {file}:
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @run cdc-producer --skip {skip}
ALTER TABLE base ADD u VARCHAR(36) DEFAULT (UUID());
-- @apply
-- @stops cdc-producer 3 a function in it returns another value
-- @stops cdc-producer 3 at {file}:
-- @run cdc-producer --skip {skip}
-- @leader MIXED
USE by_statement;
SET binlog_format = MIXED;
CREATE TABLE mixed SELECT 1 AS one;
-- @apply
-- @stops cdc-producer 3 logged as a query
-- @stops cdc-producer 3 at {file}:
-- @stops cdc-producer 3 SET PERSIST binlog_format = ROW
-- @profile producer filters.include_dbs = ["none_of_all"]
-- @run cdc-producer
-- @run cdc-consumer
-- @logged event skipped by the producer … event skipped by the producer … event skipped by the producer … event skipped by the producer
