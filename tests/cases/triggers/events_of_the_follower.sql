-- The follower would run events of its own: refused, with the statements that disable them. While its scheduler is off
-- nothing runs them: that is said, and no more.
-- @alone
CREATE DATABASE own_events;
USE own_events;
CREATE TABLE t (i INT PRIMARY KEY);
-- @apply
-- @follower
SET GLOBAL event_scheduler = ON;
CREATE EVENT own_events.`e 1` ON SCHEDULE EVERY 1 YEAR DO SET @a = 1;
-- @leader
INSERT INTO t VALUES (1);
-- @apply
-- @stops cdc-consumer 3 at flv://{leader}/own_events
-- @stops cdc-consumer 3 SET sql_log_bin = 0 … ALTER EVENT `own_events`.`e 1` DISABLE
-- @follower
SET GLOBAL event_scheduler = OFF;
-- @apply
-- @logged events would run once event_scheduler is ON
-- @equal
-- @follower
SET GLOBAL event_scheduler = ON;
-- @leader
INSERT INTO t VALUES (2);
-- @apply
-- @stops cdc-consumer 3 at flv://{leader}/own_events
-- @follower
SET sql_log_bin = 0;
ALTER EVENT `own_events`.`e 1` DISABLE;
-- @apply
-- @silent events would run
