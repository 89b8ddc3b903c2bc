-- A conflict that stops the stream can be skipped: the row of somebody else stays.
-- @profile consumer consumer.on_conflict = "stop"
-- @differs skip_conflict.t
CREATE DATABASE skip_conflict;
USE skip_conflict;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9));
-- @apply
-- @follower
INSERT INTO skip_conflict.t VALUES (1, 'own');
-- @leader
BEGIN;
INSERT INTO t VALUES (1, 'a');
INSERT INTO t VALUES (2, 'b');
COMMIT;
-- @apply
-- @stops cdc-consumer 3 cdc-consumer PROFILE --skip skip_conflict.t leaves
-- @stops cdc-consumer 3 --skip 2
-- @run cdc-consumer --skip {skip}
-- @follower
SELECT * FROM skip_conflict.t ORDER BY id;
-- = [1, "own"]
-- = [2, "b"]
