-- Statements of which one part passes the filters and another does not stop the producer; it can skip them.
-- @profile producer filters.exclude_dbs = ["beyond"]
-- @differs
CREATE DATABASE beyond;
CREATE TABLE beyond.a (i INT PRIMARY KEY);
CREATE TABLE beyond.b (i INT PRIMARY KEY);
CREATE DATABASE across;
USE across;
CREATE TABLE seen (i INT);
CREATE TABLE seen_too (i INT);
RENAME TABLE seen TO beyond.seen;
-- @apply
-- @stops cdc-producer 3 only a part of a statement passes the filters
-- @run cdc-producer --skip {skip}
RENAME TABLE beyond.a TO t;
-- @apply
-- @stops cdc-producer 3 only a part of a statement passes the filters
-- @run cdc-producer --skip {skip}
DROP TABLE seen_too, beyond.b;
-- @apply
-- @stops cdc-producer 3 only a part of a statement passes the filters
-- @run cdc-producer --skip {skip}
-- @run cdc-consumer
-- @follower
SHOW TABLES FROM across;
-- = ["seen"]
-- = ["seen_too"]
SHOW DATABASES LIKE 'beyond';
-- = nothing
