-- A view whose definer the follower does not know, and which calls that account's function: create the account there.
CREATE DATABASE definers;
CREATE USER view_owner@localhost;
CREATE DEFINER = view_owner@localhost FUNCTION definers.f() RETURNS INT NO SQL RETURN 7;
GRANT EXECUTE ON definers.* TO view_owner@localhost;
CREATE DEFINER = view_owner@localhost VIEW definers.v AS SELECT definers.f();
-- @apply
-- @stops cdc-consumer 3 hint: create that account on the follower, since accounts are not replicated, and start again
-- @follower
CREATE USER view_owner@localhost;
GRANT EXECUTE ON definers.* TO view_owner@localhost;
-- @apply
-- @equal
-- @leader
DROP DATABASE definers;
DROP USER view_owner@localhost;
-- @apply
-- @follower
DROP USER view_owner@localhost;
