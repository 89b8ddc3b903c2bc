-- A reading by the key finds no row that lies in a partition where the key has no place. A table with such rows is left
-- out of a copy, and the way out is named; others are copied, and that one once its rows are where they belong.
-- @profile producer filters.include_dbs = ["misplaced"]
-- @profile producer producer.start = "copy"
CREATE DATABASE misplaced;
USE misplaced;
CREATE TABLE one (a INT, b VARCHAR(20) NOT NULL, PRIMARY KEY (a, b));
CREATE TABLE ranges LIKE one;
ALTER TABLE ranges PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION `p 1` VALUES LESS THAN MAXVALUE);
CREATE TABLE hashes LIKE one;
ALTER TABLE hashes PARTITION BY HASH (a) PARTITIONS 3;
CREATE TABLE linear_keys LIKE one;
ALTER TABLE linear_keys PARTITION BY LINEAR KEY (b, a) PARTITIONS 3;
CREATE TABLE lists LIKE one;
ALTER TABLE lists PARTITION BY LIST COLUMNS (b) (PARTITION p0 VALUES IN ('x', 'ä'), PARTITION p1 VALUES IN ('y'));
CREATE TABLE parts LIKE one;
ALTER TABLE parts PARTITION BY RANGE (a) SUBPARTITION BY KEY (b)
(PARTITION p0 VALUES LESS THAN (10) (SUBPARTITION s0, SUBPARTITION s1), PARTITION p1 VALUES LESS THAN MAXVALUE (SUBPARTITION s2, SUBPARTITION s3));
CREATE TABLE healthy LIKE parts;
INSERT INTO healthy SELECT a.d * 100 + b.d * 10 + c.d, CONCAT('v', c.d) FROM (VALUES ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)) a (d), (VALUES ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)) b (d), (VALUES ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)) c (d);
-- Without a key it is read without a condition.
CREATE TABLE no_key (a INT, b VARCHAR(20));
ALTER TABLE no_key PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
CREATE TABLE one_no_key (a INT, b VARCHAR(20));
INSERT INTO one_no_key VALUES (5, 'x'), (15, 'y');
ALTER TABLE no_key EXCHANGE PARTITION p0 WITH TABLE one_no_key WITHOUT VALIDATION;
INSERT INTO one VALUES (5, 'x'), (15, 'y');
ALTER TABLE ranges EXCHANGE PARTITION p0 WITH TABLE one WITHOUT VALIDATION;
-- The key that is misplaced is there a second time.
INSERT INTO ranges VALUES (15, 'y'), (16, 'z');
INSERT INTO one VALUES (3, 'x'), (4, 'y');
ALTER TABLE hashes EXCHANGE PARTITION p0 WITH TABLE one WITHOUT VALIDATION;
INSERT INTO one VALUES (1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x');
ALTER TABLE linear_keys EXCHANGE PARTITION p1 WITH TABLE one WITHOUT VALIDATION;
INSERT INTO one VALUES (1, 'x'), (2, 'Ä'), (3, 'y');
ALTER TABLE lists EXCHANGE PARTITION p0 WITH TABLE one WITHOUT VALIDATION;
-- The right partition, but not each the right one of its parts.
INSERT INTO one VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f');
ALTER TABLE parts EXCHANGE PARTITION s1 WITH TABLE one WITHOUT VALIDATION;
-- @start
-- @logged table=misplaced.ranges why="its partition p0 has rows that belong in another partition … ALTER TABLE `misplaced`.`ranges` REPAIR PARTITION ALL
-- @logged table=misplaced.hashes why="its partition p0 has rows
-- @logged table=misplaced.linear_keys why="its partition p1 has rows
-- @logged table=misplaced.lists why="its partition p0 has rows
-- @logged table=misplaced.parts why="its partition s1 has rows
-- @logged copied a table table=misplaced.healthy rows=1000
-- @logged copied a table table=misplaced.no_key rows=2
SET sql_log_bin = 0;
-- Two rows with one key are in each other's way.
DELETE FROM ranges WHERE a = 15;
ALTER TABLE ranges REPAIR PARTITION ALL;
ALTER TABLE hashes REPAIR PARTITION ALL;
ALTER TABLE linear_keys REPAIR PARTITION ALL;
ALTER TABLE lists REPAIR PARTITION ALL;
ALTER TABLE parts REPAIR PARTITION ALL;
SELECT * FROM ranges ORDER BY a;
-- = [5, "x"]
-- = [15, "y"]
-- = [16, "z"]
-- @run cdc-producer --copy misplaced.*s
-- @apply
-- Nor does the consumer find such rows of the follower's, which would have a key twice.
-- @follower
USE misplaced;
CREATE TABLE aside LIKE one;
INSERT INTO aside VALUES (777, 'v7');
ALTER TABLE healthy EXCHANGE PARTITION s0 WITH TABLE aside WITHOUT VALIDATION;
DROP TABLE aside;
-- @run cdc-producer --copy misplaced.healthy --until-current
-- @run cdc-consumer
-- @stops cdc-consumer 3 partition s0 of the follower's table misplaced.healthy has rows that belong in another partition
-- @follower
DELETE FROM misplaced.healthy WHERE a = 777;
ALTER TABLE misplaced.healthy REPAIR PARTITION ALL;
-- @apply
