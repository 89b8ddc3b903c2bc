-- The follower has triggers of its own, such as a copy brings: refused, with the statements that drop them, or dropped.
-- Those of tables that are left out are nobody's business.
CREATE DATABASE own_triggers;
USE own_triggers;
CREATE TABLE t (i INT PRIMARY KEY);
CREATE TABLE history (i INT);
CREATE TABLE other (i INT);
-- @apply
-- @follower
USE own_triggers;
CREATE TRIGGER `tr``1` AFTER INSERT ON t FOR EACH ROW INSERT INTO history VALUES (NEW.i);
CREATE TRIGGER on_other AFTER INSERT ON other FOR EACH ROW SET @a = 1;
-- @leader
CREATE TRIGGER `tr``1` AFTER INSERT ON t FOR EACH ROW INSERT INTO history VALUES (NEW.i);
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (2);
-- @apply
-- @stops cdc-consumer 3 at flv://{leader}/own_triggers/t
-- @stops cdc-consumer 3 DROP TRIGGER IF EXISTS `own_triggers`.`on_other`
-- @stops cdc-consumer 3 DROP TRIGGER IF EXISTS `own_triggers`.`tr``1`
-- @follower
SELECT * FROM t;
-- = nothing
DROP TRIGGER IF EXISTS `own_triggers`.`on_other`;
DROP TRIGGER IF EXISTS `own_triggers`.`tr``1`;
-- @apply
-- @equal
-- @follower
CREATE TRIGGER `tr``1` AFTER INSERT ON t FOR EACH ROW INSERT INTO history VALUES (NEW.i);
CREATE TRIGGER on_other AFTER INSERT ON other FOR EACH ROW SET @a = 1;
-- @profile consumer consumer.triggers = "drop"
-- @profile consumer filters.exclude_tables = ["*.other"]
-- @leader
INSERT INTO t VALUES (3);
-- @apply
-- @logged trigger dropped
-- @follower
SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'own_triggers';
-- = ["on_other"]
