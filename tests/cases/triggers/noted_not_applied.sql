-- The leader's triggers and events are noted and not created: what they do comes in the records. Those of a database
-- that is dropped are not missed.
CREATE DATABASE noted;
USE noted;
CREATE TABLE t (i INT);
CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.i = 5;
INSERT INTO t VALUES (1);
DROP TRIGGER x;
CREATE EVENT x ON SCHEDULE EVERY 1 DAY STARTS '2100-01-01' DO DELETE FROM t;
CREATE TRIGGER y BEFORE INSERT ON t FOR EACH ROW SET NEW.i = 6;
-- @apply
-- @follower
SELECT * FROM noted.t;
-- = [5]
SHOW TRIGGERS FROM noted;
-- = nothing
SHOW EVENTS FROM noted;
-- = nothing
SELECT sequence, state FROM cdc.ledger WHERE resource = '{leader}' AND sequence > 0 ORDER BY sequence;
-- = [1, "done"]
-- = [2, "not applied"]
-- = [4, "not applied"]
-- = [5, "not applied"]
-- = [6, "not applied"]
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [6]
-- @run cdc-consumer --status
-- @logged ledger       2 done, 4 not applied
-- @logged DELIMITER ;; … EVENT x ON SCHEDULE … TRIGGER y BEFORE INSERT … DELIMITER ;
-- @leader
DROP DATABASE noted;
CREATE DATABASE noted;
-- @apply
-- @run cdc-consumer --status
-- @logged not here     no triggers or events of the leader
