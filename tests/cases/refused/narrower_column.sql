-- The leader took a value without strict mode, and the follower computes another column of the row: a value that fits is
-- stored as the leader computed it, one that does not must not come out cut off.
-- @differs narrower_column.t
CREATE DATABASE narrower_column;
USE narrower_column;
CREATE TABLE t (id INT PRIMARY KEY, a CHAR(4), g TINYINT AS (id * 100) STORED);
-- @apply
-- @follower
ALTER TABLE narrower_column.t MODIFY a CHAR(3);
-- @leader
SET sql_mode = '';
INSERT INTO t (id, a) VALUES (2, 'abc');
INSERT INTO t (id, a) VALUES (3, 'abcd');
-- @apply
-- @stops cdc-consumer 3 Data too long for column 'a' … at sequence 3
-- @run cdc-consumer --skip {skip}
-- @follower
SELECT * FROM narrower_column.t;
-- = [2, "abc", 127]
