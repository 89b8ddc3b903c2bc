-- Statements that a follower can't repeat are executed there, and their tables copied again: numbers in another order,
-- answers that each session has of its own, digits that no log has. Rows that change meanwhile are as on the leader.
-- @profile producer producer.on_unrepeatable = "copy"
-- @profile producer filters.include_dbs = ["copied_again"]
CREATE DATABASE copied_again;
USE copied_again;
CREATE TABLE bare (v VARCHAR(9));
CREATE TABLE keyed (k VARCHAR(9) PRIMARY KEY, v INT);
CREATE TABLE asked (i INT PRIMARY KEY);
CREATE TABLE divided (i INT PRIMARY KEY);
CREATE TABLE `mo``ved` (v INT);
CREATE TABLE stepped (k INT PRIMARY KEY);
INSERT INTO bare VALUES ('a'), ('b'), ('c');
INSERT INTO keyed VALUES ('a', 1), ('b', 2), ('c', 3);
INSERT INTO asked VALUES (1), (2);
INSERT INTO divided VALUES (7), (9);
INSERT INTO `mo``ved` VALUES (1), (2), (3);
INSERT INTO stepped VALUES (3), (7);
-- @apply
-- The follower's rows are in another order now.
-- @follower
USE copied_again;
DELETE FROM bare WHERE v = 'a';
INSERT INTO bare VALUES ('a');
DELETE FROM `mo``ved` WHERE v = 1;
INSERT INTO `mo``ved` VALUES (1);
-- @leader
ALTER TABLE bare ADD n INT AUTO_INCREMENT PRIMARY KEY FIRST;
UPDATE bare SET v = 'x' WHERE n = 1;
INSERT INTO bare (v) VALUES ('new');
DELETE FROM bare WHERE n = 2;
ALTER TABLE keyed ADD n SERIAL;
ALTER TABLE asked ADD c BIGINT DEFAULT (CONNECTION_ID());
SET div_precision_increment = 20;
ALTER TABLE divided ADD d DECIMAL(40, 20) DEFAULT (1 / 3);
ALTER TABLE `mo``ved` ADD n INT AUTO_INCREMENT UNIQUE, RENAME `mo``ved_2`;
SET auto_increment_increment = 3;
ALTER TABLE stepped DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY;
-- @apply
-- @logged cdc-producer a follower can't repeat a statement, so its table is copied again table=copied_again.bare why="each server numbers
-- @logged cdc-producer table=copied_again.asked why="a function in it returns another value
-- @logged cdc-producer table=copied_again.divided why="the number of digits
-- @logged cdc-producer copied a table table=copied_again.mo`ved_2
-- @logged cdc-producer copied a table table=copied_again.stepped
-- @equal
SELECT COUNT(DISTINCT c) FROM asked;
-- @both
-- What may hold a password, and what no copy can mend, stops the producer as before.
-- @leader
SET default_week_format = 3;
ALTER TABLE divided ADD w INT DEFAULT (WEEK('2026-01-01'));
-- @apply
-- @stops cdc-producer 3 depends on default_week_format … by hand with the mode
-- @run cdc-producer --skip {skip}
-- @follower
ALTER TABLE copied_again.divided ADD w INT DEFAULT (WEEK('2026-01-01', 3));
-- @leader
ALTER TABLE asked ADD d BIGINT DEFAULT (CONNECTION_ID()), CONNECTION = 'mysql://u:hunter2@h/d/t';
-- @apply
-- @stops cdc-producer 3 the table's CONNECTION leads to another server
-- @silent hunter2
-- @run cdc-producer --skip {skip}
DROP TABLE asked;
