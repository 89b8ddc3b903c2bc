-- What stores a row takes its size once; looking whether it was as it should be must not take more than a packet.
-- @server follower --max-allowed-packet=1M
CREATE DATABASE large_value;
USE large_value;
CREATE TABLE t (id INT PRIMARY KEY, t LONGTEXT);
INSERT INTO t VALUES (1, REPEAT('x', 400000)), (2, REPEAT('x', 400000));
-- @apply
-- @follower
UPDATE large_value.t SET t = 'foreign' WHERE id = 2;
-- @leader
UPDATE t SET t = REPEAT('y', 400000) WHERE id = 1;
UPDATE t SET t = REPEAT('y', 400000) WHERE id = 2;
-- @apply
-- @conflict key=id=2
