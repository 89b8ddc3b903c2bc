-- A user with exactly the privileges that the consumer demands: a definer other than it stops it, and one that is a system
-- user, with the GRANT that lets it go on. The start says so before.
-- @newer follower SET_ANY_DEFINER; mysql_8_0/definers has what 8.0 does
-- @profile consumer database = {user = "cdc_narrow", password = "narrow"}
-- @follower
DROP USER IF EXISTS cdc_narrow;
CREATE USER cdc_narrow IDENTIFIED BY 'narrow';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE,
  ALTER ROUTINE, EVENT, TRIGGER, SESSION_VARIABLES_ADMIN ON *.* TO cdc_narrow;
-- @leader
CREATE DATABASE system_definer;
USE system_definer;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9));
INSERT INTO t VALUES (1, 'a');
CREATE DEFINER = nobody@nowhere VIEW seen AS SELECT 1;
CREATE DEFINER = root@localhost FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1;
INSERT INTO t VALUES (2, 'b');
-- @apply
-- @logged definer is not our user … GRANT SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER ON *.* TO 'cdc_narrow'@'%'
-- @stops cdc-consumer 3 SET_ANY_DEFINER … hint: on the follower: GRANT … if the server grants none … with another definer
-- @follower
SELECT COUNT(*) FROM system_definer.t;
-- = [1]
GRANT SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER ON *.* TO cdc_narrow;
-- @run cdc-consumer
-- @stops cdc-consumer 3 SYSTEM_USER privilege(s) … hint: on the follower: GRANT SYSTEM_USER ON *.* TO the user of the consumer's profile
-- @logged whose definer is root or another system user will stop the consumer
-- @logged run on the follower: GRANT SYSTEM_USER ON *.* TO 'cdc_narrow'@'%'
-- @follower
GRANT SYSTEM_USER ON *.* TO cdc_narrow;
-- @run cdc-consumer
-- @silent system user will stop
SELECT system_definer.f(), COUNT(*) FROM system_definer.t;
-- = [1, 2]
DROP USER cdc_narrow;
