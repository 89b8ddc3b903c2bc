-- A statement in which nothing proves that a name is that of the renamed database is refused.
-- @profile consumer renames.ambiguous = "ambiguous_2"
-- @differs
CREATE DATABASE ambiguous;
USE ambiguous;
CREATE TABLE ambiguous (i INT);
CREATE VIEW v AS SELECT ambiguous.i FROM ambiguous;
-- @apply
-- @stops cdc-consumer 3 it is ambiguous where a statement names the database ambiguous, which is renamed: CREATE
-- @stops cdc-consumer 3 --skip 2
-- @run cdc-consumer --skip {skip}
-- @follower
USE ambiguous_2;
SHOW TABLES;
-- = ["ambiguous"]
