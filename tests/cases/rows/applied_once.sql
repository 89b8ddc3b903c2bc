-- Rows are applied once, in the leader's order, however often the consumer starts.
CREATE DATABASE applied_once;
USE applied_once;
CREATE TABLE pet (id INT PRIMARY KEY, name VARCHAR(20));
INSERT INTO pet VALUES (1, 'a'), (2, 'b');
BEGIN;
UPDATE pet SET id = 3, name = 'c' WHERE id = 1;
DELETE FROM pet WHERE id = 2;
COMMIT;
-- @apply
-- @logged sequence=4
-- @run cdc-consumer
-- @logged records=0
-- @follower
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [4]
-- @leader
INSERT INTO pet VALUES (4, 'd');
-- @apply
-- @run cdc-consumer
