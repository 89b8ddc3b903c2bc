-- Statements that name a database that the filters leave out, and that the follower can run without it.
-- @profile producer filters.exclude_dbs = ["unseen"]
-- @differs unseen
CREATE DATABASE unseen;
CREATE TABLE unseen.a (i INT PRIMARY KEY);
INSERT INTO unseen.a VALUES (1);
CREATE DATABASE border;
USE border;
CREATE TABLE seen (i INT);
CREATE TABLE t SELECT * FROM unseen.a;
CREATE PROCEDURE t() SELECT * FROM unseen.a;
CREATE TRIGGER unseen.t BEFORE INSERT ON unseen.a FOR EACH ROW INSERT INTO border.seen VALUES (1);
-- @apply
-- @equal
INSERT INTO unseen.a VALUES (2);
SELECT COUNT(*) FROM seen;
-- = [1]
-- @apply
-- @equal
DROP DATABASE unseen;
CREATE TABLE after_that (i INT);
-- @apply
-- @follower
SHOW DATABASES LIKE 'unseen';
-- = nothing
