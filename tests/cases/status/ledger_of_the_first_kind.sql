-- A ledger that the first version made lacks columns: --status reads it, and the consumer brings it up to date.
-- @alone
CREATE DATABASE old_ledger;
USE old_ledger;
CREATE TABLE t (i INT);
CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.i = 5;
-- @apply
-- @follower
ALTER TABLE cdc.ledger DROP COLUMN context, DROP COLUMN affects, MODIFY state ENUM('intent', 'done', 'not applied') NOT NULL;
DROP TABLE cdc.conflicts;
-- @run cdc-consumer --status
-- @logged TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.i = 5;;
-- @leader
DROP TABLE t;
-- @apply
-- @follower
SELECT sequence, state FROM cdc.ledger WHERE resource = '{leader}' ORDER BY sequence;
-- = [0, "done"]
-- = [1, "done"]
-- = [2, "not applied"]
-- = [3, "done"]
SELECT COUNT(*) FROM cdc.conflicts;
-- = [0]
-- @run cdc-consumer --status
-- @logged ledger       3 done, 1 not applied
