-- A table option that may hold a password stops the producer until the table is left out; what is copied by SQL then replicates.
-- @newer leader SHOW BINARY LOG STATUS
-- @profile producer filters.include_dbs = ["unlike_option"]
-- @differs unlike_option.a2
CREATE DATABASE unlike_option;
USE unlike_option;
CREATE TABLE b (i INT);
CREATE TABLE a (i INT);
INSERT INTO a VALUES (7);
CREATE TABLE a2 (i INT) CONNECTION = 'mysql://u:hunter2@h/d/t';
SHOW BINARY LOG STATUS;
-- @as file
-- @apply
-- @stops cdc-producer 3 may hold a password
-- @stops cdc-producer 3 at {file}:
-- @silent hunter2
-- @profile producer filters.exclude_tables = ["unlike_option.a*"]
CREATE TABLE new_a SELECT * FROM a;
-- @apply
-- @follower
SELECT COUNT(*) FROM unlike_option.new_a;
-- = [1]
