-- Of many rows, which are loaded, one has a value that is too long for the follower's column: none is stored.
-- @differs loaded_too_long.t
CREATE DATABASE loaded_too_long;
USE loaded_too_long;
CREATE TABLE t (id INT PRIMARY KEY, v CHAR(9));
-- @apply
-- @follower
ALTER TABLE loaded_too_long.t MODIFY v CHAR(4);
-- @leader
INSERT INTO t WITH RECURSIVE n AS (SELECT 9300 i UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i, i FROM n;
-- @apply
-- @stops cdc-consumer 3 Data too long
-- @follower
SELECT COUNT(*) FROM loaded_too_long.t;
-- = [0]
