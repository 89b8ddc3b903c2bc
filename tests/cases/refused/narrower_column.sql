-- The leader took a value without strict mode, and the follower computes another column of the row.
-- @profile consumer consumer.before_images = "ignore"
CREATE DATABASE narrower_column;
USE narrower_column;
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(4), g INT AS (id * 100) STORED);
-- @apply
-- @follower
ALTER TABLE narrower_column.t MODIFY a VARCHAR(3);
-- @leader
SET sql_mode = '';
INSERT INTO t VALUES (3, 'abcd', DEFAULT);
-- @apply
-- @stops cdc-consumer 3 Data too long for column 'a' … at sequence 2
-- @run cdc-consumer --skip {skip}
-- @differs
-- @follower
SELECT * FROM narrower_column.t;
-- = nothing
