-- Only one table passes the filters: a routine passes with its database, another table does not.
-- @profile consumer filters.include_tables = ["routine_goes.t"]
-- @differs routine_goes.hidden
CREATE DATABASE routine_goes;
USE routine_goes;
CREATE TABLE t (i INT);
CREATE TABLE hidden (i INT);
CREATE PROCEDURE p() SELECT * FROM t;
-- @apply
-- @follower
SELECT sequence, state FROM cdc.ledger WHERE resource = '{leader}' ORDER BY sequence;
-- = [0, "done"]
-- = [1, "done"]
-- = [2, "not applied"]
-- = [3, "done"]
SHOW TABLES FROM routine_goes;
-- = ["t"]
