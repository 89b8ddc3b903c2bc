-- What a setting of the leader's session makes of a document in a generated column is in the rows, and in nothing else:
-- that a document is there says nothing of its numbers.
-- @alone
CREATE DATABASE computed;
USE computed;
CREATE TABLE t (id INT PRIMARY KEY, j JSON AS (JSON_OBJECT('third', id / 3)) STORED);
-- @apply
SET GLOBAL div_precision_increment = 10;
FLUSH TABLES;
-- @leader NEW
INSERT INTO computed.t (id) VALUES (1), (2);
-- @leader
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
-- @follower
SET GLOBAL div_precision_increment = 10;
FLUSH TABLES;
-- @apply
-- @leader NEW2
UPDATE computed.t SET id = id + 10;
-- @leader
-- @apply
-- @follower
SELECT id, CAST(j AS CHAR) FROM computed.t ORDER BY id;
-- = [11, "{\"third\": 3.6666666667}"]
-- = [12, "{\"third\": 4.0000000000}"]
