-- A table without a key is read without a condition. But a row in a wrong partition may have the same value of a unique
-- key with NULLs as another one, and on the follower, where each row is in its place, these would be in each other's way.
-- @profile producer filters.include_dbs = ["misplaced_keyless"]
-- @profile producer producer.start = "copy"
CREATE DATABASE misplaced_keyless;
USE misplaced_keyless;
CREATE TABLE one (a INT, b VARCHAR(20), UNIQUE KEY u (b, a));
CREATE TABLE twice LIKE one;
ALTER TABLE twice PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
CREATE TABLE nulls LIKE twice;
INSERT INTO one VALUES (NULL, 'n'), (NULL, 'n'), (5, 'x'), (15, 'y');
ALTER TABLE twice EXCHANGE PARTITION p0 WITH TABLE one WITHOUT VALIDATION;
INSERT INTO twice VALUES (15, 'y'), (16, 'z');
-- NULLs are in nobody's way.
INSERT INTO one VALUES (NULL, 'n'), (NULL, 'n'), (15, NULL), (15, NULL), (5, NULL);
ALTER TABLE nulls EXCHANGE PARTITION p1 WITH TABLE one WITHOUT VALIDATION;
-- @start
-- @logged table=misplaced_keyless.twice why="its partition p0 has rows that belong in another partition
-- @logged copied a table table=misplaced_keyless.nulls rows=5
SET sql_log_bin = 0;
DELETE FROM twice WHERE a = 15;
ALTER TABLE twice REPAIR PARTITION ALL;
-- @run cdc-producer --copy misplaced_keyless.*
-- @apply
-- Nor can the follower's rows in a wrong partition be removed.
-- @follower
USE misplaced_keyless;
CREATE TABLE aside LIKE one;
INSERT INTO aside VALUES (777, 'v7'), (5, 'x');
ALTER TABLE twice EXCHANGE PARTITION p0 WITH TABLE aside WITHOUT VALIDATION;
DROP TABLE aside;
-- @run cdc-producer --copy misplaced_keyless.twice --until-current
-- @run cdc-consumer
-- @stops cdc-consumer 3 a partition of the follower's table misplaced_keyless.twice has rows that belong in another partition … ALTER TABLE `misplaced_keyless`.`twice` REPAIR PARTITION ALL
-- @follower
ALTER TABLE misplaced_keyless.twice REPAIR PARTITION ALL;
-- @apply
