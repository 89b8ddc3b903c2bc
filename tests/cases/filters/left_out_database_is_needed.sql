-- Statements that name a database that the filters leave out, and that the follower can't run without it: it refuses
-- each, and it can be skipped.
-- @profile producer filters.exclude_dbs = ["unseen_here"]
-- @differs unseen_here needed.c needed.f needed.v
CREATE DATABASE unseen_here;
CREATE TABLE unseen_here.a (i INT PRIMARY KEY);
CREATE DATABASE needed;
USE needed;
CREATE TABLE seen (i INT);
CREATE TABLE c LIKE unseen_here.a;
-- @apply
-- @stops cdc-consumer 3 the follower refuses a statement: Unknown database
-- @run cdc-consumer --skip {skip}
CREATE TABLE f (i INT, FOREIGN KEY (i) REFERENCES unseen_here.a (i));
-- @apply
-- @stops cdc-consumer 3 the follower refuses a statement: Failed
-- @run cdc-consumer --skip {skip}
CREATE VIEW v AS SELECT * FROM unseen_here.a;
-- @apply
-- @stops cdc-consumer 3 the follower refuses a statement: Unknown database
-- @run cdc-consumer --skip {skip}
INSERT INTO seen VALUES (1);
