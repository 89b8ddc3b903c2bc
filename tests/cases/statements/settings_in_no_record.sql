-- A leader's users turn settings off that no record carries: the follower does not refuse what the leader then took,
-- though its own are ON, as they are by default.
-- @newer leader restrict_fk_on_non_standard_key
-- @newer follower restrict_fk_on_non_standard_key
CREATE DATABASE not_carried;
USE not_carried;
SET innodb_strict_mode = OFF, restrict_fk_on_non_standard_key = OFF;
CREATE TABLE t (i INT, KEY (i));
CREATE TABLE f (i INT, FOREIGN KEY (i) REFERENCES t (i));
CREATE TABLE r (i INT) ROW_FORMAT=FIXED;
-- @apply
-- @follower
SELECT @@GLOBAL.innodb_strict_mode, @@GLOBAL.restrict_fk_on_non_standard_key;
-- = [1, 1]
