-- Of rows without a key one is missing on the follower and another is there too often: a conflict, though as many rows
-- are deleted as on the leader.
-- @profile consumer consumer.on_conflict = "stop"
-- @differs missing_and_twice.t
CREATE DATABASE missing_and_twice;
USE missing_and_twice;
CREATE TABLE t (n INT, s VARCHAR(10));
INSERT INTO t VALUES (0, 'same'), (1, 'same'), (2, 'same'), (3, 'same'), (4, 'same'), (5, 'same'), (6, 'same');
-- @apply
-- @follower
USE missing_and_twice;
DELETE FROM t WHERE n = 3;
INSERT INTO t VALUES (4, 'same');
-- @leader
DELETE FROM t WHERE n < 5;
-- @apply
-- @stops cdc-consumer 3 conflict: Delete of n=3, s='same' in flv://{leader}/missing_and_twice/t: the row is not there
-- @profile consumer consumer.on_conflict = "converge"
-- @apply
-- @conflict key="n=3, s='same'"
-- @follower
SELECT n FROM t ORDER BY n;
-- = [4]
-- = [5]
-- = [6]
