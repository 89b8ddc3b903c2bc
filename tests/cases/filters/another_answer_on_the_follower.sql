-- A default that has another answer on the follower stops the producer until the table is left out; what is copied by SQL then replicates.
-- @newer leader SHOW BINARY LOG STATUS
-- @profile producer filters.include_dbs = ["unlike_answer"]
-- @differs unlike_answer.a
CREATE DATABASE unlike_answer;
USE unlike_answer;
CREATE TABLE b (i INT);
CREATE TABLE a (i INT);
INSERT INTO a VALUES (7);
ALTER TABLE a ADD c INT DEFAULT (CONNECTION_ID());
SHOW BINARY LOG STATUS;
-- @as file
-- @apply
-- @stops cdc-producer 3 returns another value
-- @stops cdc-producer 3 at {file}:
-- @silent hunter2
-- @profile producer filters.exclude_tables = ["unlike_answer.a*"]
CREATE TABLE new_a SELECT * FROM a;
-- @apply
-- @follower
SELECT COUNT(*) FROM unlike_answer.new_a;
-- = [1]
