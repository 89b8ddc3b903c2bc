-- A column that only the follower has, or that has another type there, is no conflict; a changed SET is.
-- @alone
-- @differs
CREATE DATABASE another_type;
USE another_type;
CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(10,1), s SET('', 'x'));
-- @apply
-- @follower
USE another_type;
ALTER TABLE t MODIFY d DECIMAL(10,3), ADD own TEXT;
-- @leader
INSERT INTO t VALUES (1, 1.5, 2), (2, 2.5, 2), (3, 3.5, 2), (4, 4.5, 2), (5, 5.5, 2), (6, 6.5, 2), (7, 7.5, 2), (8, 8.5, 2);
-- @apply
-- @follower
UPDATE t SET own = 'kept';
UPDATE t SET s = '' WHERE id = 4;
-- @leader
UPDATE t SET d = d + 0.2;
UPDATE t SET d = d - 0.2;
-- @apply
-- @conflict key=id=4 … the row has another s than the leader's had
-- @logged columns of another type than the leader's
-- @silent columns of another type than the leader's … columns of another type than the leader's
-- @follower
SELECT COUNT(*) FROM t WHERE d = id + 0.5 AND s + 0 = 2 AND own = 'kept';
-- = [8]
