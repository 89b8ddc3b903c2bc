-- A table that the filters leave out may be the follower's own: a DROP DATABASE takes it along, as the statement says.
-- @profile producer filters.exclude_tables = ["whole.hidden"]
-- @differs whole.hidden
CREATE DATABASE whole;
CREATE TABLE whole.a (i INT);
CREATE TABLE whole.hidden (i INT);
-- @apply
-- @equal
-- @follower
CREATE TABLE whole.hidden (ours INT);
-- @leader
DROP DATABASE whole;
-- @apply
-- @follower
SHOW DATABASES LIKE 'whole';
-- = nothing
