-- Statements that number rows: where the follower could number them otherwise they stop, each with the way on. Rows that
-- were rolled back count for the leader's numbers alone; an order of rows without a key is each server's own.
CREATE DATABASE row_numbers;
USE row_numbers;
CREATE TABLE bare (i INT, v VARCHAR(9));
CREATE TABLE counted (p INT AUTO_INCREMENT PRIMARY KEY, i INT, v VARCHAR(9));
CREATE TABLE single (v VARCHAR(9));
INSERT INTO single VALUES ('1');
ALTER TABLE single ADD n INT AUTO_INCREMENT PRIMARY KEY FIRST;
INSERT INTO single (v) VALUES ('2');
INSERT INTO bare VALUES (7, '1'), (0, '2');
INSERT INTO counted (v) VALUES ('a'), ('b');
BEGIN;
INSERT INTO counted (v) VALUES ('never'), ('never');
ROLLBACK;
ALTER TABLE bare MODIFY i INT AUTO_INCREMENT UNIQUE;
ALTER TABLE counted MODIFY p INT NOT NULL, ADD n INT AUTO_INCREMENT PRIMARY KEY, DROP PRIMARY KEY;
ALTER TABLE single DROP PRIMARY KEY, DROP n, ADD m INT AUTO_INCREMENT UNIQUE;
-- @apply
-- @stops cdc-consumer 3 may number the rows differently from the leader, the table has no primary key
-- @follower
USE row_numbers;
UPDATE bare SET i = 8 WHERE v = '2';
-- @apply
-- @stops cdc-consumer 3 may number the rows differently from the leader, its numbers continue from a counter
-- @follower
ALTER TABLE counted AUTO_INCREMENT = 5;
ALTER TABLE counted MODIFY p INT NOT NULL, ADD n INT AUTO_INCREMENT PRIMARY KEY, DROP PRIMARY KEY;
-- @apply --skip {skip}
-- @stops cdc-consumer 3 the table has rows, and each server numbers them in an order of its own
-- @follower
ALTER TABLE single DROP PRIMARY KEY, DROP n, ADD m INT AUTO_INCREMENT UNIQUE;
-- @apply --skip {skip}
