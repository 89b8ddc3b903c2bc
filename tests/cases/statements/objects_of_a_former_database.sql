-- A statement whose default database is not replicated runs where its names are full; objects keep their definer.
-- @profile consumer filters.include_dbs = ["full_names"]
-- @differs not_full_names
CREATE DATABASE full_names;
CREATE DATABASE not_full_names;
USE not_full_names;
CREATE TABLE full_names.t (i INT);
CREATE DEFINER = 'nobody'@'localhost' VIEW full_names.v AS SELECT * FROM full_names.t;
CREATE DEFINER = 'nobody'@'localhost' PROCEDURE full_names.p() SELECT 1;
-- @apply
-- @follower
SHOW DATABASES LIKE 'not_full_names';
-- = nothing
SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'full_names';
-- = ["nobody@localhost"]
SELECT DEFINER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'full_names';
-- = ["nobody@localhost"]
