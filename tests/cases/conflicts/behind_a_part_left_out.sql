-- A row in the way of a large transaction whose first part is of a table that the follower leaves out.
-- @profile consumer filters.exclude_tables = ["part_left_out.left_out"]
-- @differs part_left_out.left_out
CREATE DATABASE part_left_out;
USE part_left_out;
CREATE TABLE t (id INT PRIMARY KEY, t MEDIUMTEXT);
CREATE TABLE left_out LIKE t;
-- @apply
-- @follower
INSERT INTO part_left_out.t VALUES (7, 'foreign');
-- @leader
SET @wide = REPEAT('x', 250000);
INSERT INTO t VALUES (1, 'before');
BEGIN;
INSERT INTO left_out VALUES (0, @wide), (1, @wide), (2, @wide), (3, @wide), (4, @wide);
INSERT INTO left_out VALUES (5, @wide), (6, @wide), (7, @wide), (8, @wide), (9, @wide);
INSERT INTO t VALUES (4, @wide), (5, @wide), (6, @wide), (7, @wide), (8, @wide), (9, @wide);
INSERT INTO t VALUES (10, @wide), (11, @wide), (12, @wide), (13, @wide), (14, @wide);
INSERT INTO t VALUES (15, @wide), (16, @wide), (17, @wide), (18, @wide), (19, @wide);
COMMIT;
-- @apply
-- @conflict key=id=7
