-- In a table without a key the error value of an ENUM is not its empty member, and many rows of either are found at once.
-- @alone
-- @profile consumer log.level = "debug"
CREATE DATABASE enum_error_value;
USE enum_error_value;
CREATE TABLE t (n INT, s ENUM('a', ''));
SET sql_mode = '';
INSERT INTO t VALUES (0, 2), (1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0);
-- @apply
DELETE FROM t WHERE IF(s + 0 = 2, n < 5, n > 2);
-- @apply
-- @silent one by one
-- @silent row by row
-- @follower
SELECT n, s + 0 FROM enum_error_value.t ORDER BY n;
-- = [0, 0]
-- = [1, 0]
-- = [2, 0]
-- = [5, 2]
