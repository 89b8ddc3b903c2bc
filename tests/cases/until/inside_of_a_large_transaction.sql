-- The place is inside of a large transaction, which is executed in parts, or of a large CREATE TABLE … SELECT: nothing of
-- it is applied.
CREATE DATABASE until_large;
USE until_large;
CREATE TABLE t (id INT PRIMARY KEY, t MEDIUMTEXT);
SET @wide = REPEAT('x', 666666);
BEGIN;
INSERT INTO t VALUES (0, @wide);
INSERT INTO t VALUES (1, @wide);
INSERT INTO t VALUES (2, @wide);
INSERT INTO t VALUES (3, @wide);
INSERT INTO t VALUES (4, @wide);
INSERT INTO t VALUES (5, @wide);
INSERT INTO t VALUES (6, @wide);
INSERT INTO t VALUES (7, @wide);
COMMIT;
CREATE TABLE made (PRIMARY KEY (id)) SELECT * FROM t;
-- @apply --until 8
-- @logged sequence=1 next_sequence=2
-- @follower
SELECT * FROM until_large.t;
-- = nothing
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [1]
-- @run cdc-consumer --until 9
-- @logged sequence=9 next_sequence=10
-- @follower
SELECT COUNT(*) FROM until_large.t;
-- = [8]
-- @run cdc-consumer --until 11
-- @logged sequence=9 next_sequence=10
-- @follower
SHOW TABLES FROM until_large;
-- = ["t"]
-- @run cdc-consumer
