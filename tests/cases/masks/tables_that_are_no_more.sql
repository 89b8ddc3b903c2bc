-- Rows of masked tables that the leader has no more: of a tool's table, which has become its table, and of another one.
-- @profile producer filters.include_dbs = ["masks_swap"]
-- @profile producer filters.mask_columns = { "masks_swap.t.email" = "null", "masks_swap.stage.email" = "null" }
-- @profile producer filters.shadow_tables = ["_{table}_gho", "_{table}_del"]
-- @differs masks_swap.t
CREATE DATABASE masks_swap;
USE masks_swap;
CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(40));
INSERT INTO t VALUES (1, 'ann@secret');
CREATE TABLE _t_gho LIKE t;
ALTER TABLE _t_gho ADD phone INT;
INSERT INTO _t_gho (id, email) SELECT id, email FROM t;
RENAME TABLE t TO _t_del, _t_gho TO t;
DROP TABLE _t_del;
-- @apply
-- @follower
SELECT id, email, phone FROM masks_swap.t;
-- = [1, null, null]
-- @leader
CREATE TABLE stage (id INT PRIMARY KEY, email VARCHAR(40));
INSERT INTO stage VALUES (1, 'bob@secret');
DROP TABLE stage;
-- @apply
-- @stops cdc-producer 3 the leader has the table no more
-- @profile producer filters.exclude_tables = ["masks_swap.stage"]
-- @apply
-- @silent secret
-- @follower
DROP TABLE masks_swap.stage;
