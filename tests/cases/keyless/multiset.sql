-- Rows without a key: of equal ones as many go as on the leader, and letters, numbers and JSON are told apart exactly.
CREATE DATABASE multiset;
USE multiset;
CREATE TABLE t (a VARCHAR(10), b DOUBLE, c JSON);
INSERT INTO t VALUES ('X', 0.1, '1'), ('x', 0.1, '1.0'), ('x', 0.1, '1'), ('x', 0.1, '1'), (NULL, NULL, NULL);
DELETE FROM t WHERE a IS NULL;
DELETE FROM t WHERE a = BINARY 'x' AND JSON_TYPE(c) = 'INTEGER' LIMIT 1;
UPDATE t SET a = 'y', b = -0e0, c = '{"k": [1]}' WHERE a = BINARY 'x' AND JSON_TYPE(c) = 'INTEGER';
-- @apply
-- @follower
SELECT a, CAST(b AS CHAR), CAST(c AS CHAR) FROM multiset.t ORDER BY a COLLATE utf8mb4_bin;
-- = ["X", "0.1", "1"]
-- = ["x", "0.1", "1.0"]
-- = ["y", "-0", "{\"k\": [1]}"]
