-- Compressed transactions become the same records as others, all at the position of the event that has them all.
-- @newer leader SHOW BINARY LOG STATUS
CREATE DATABASE compressed;
-- -> {}
USE compressed;
CREATE TABLE a (i INT PRIMARY KEY, t TEXT);
-- -> {}
SET binlog_transaction_compression = ON;
SHOW BINARY LOG STATUS;
-- @as file many_at
INSERT INTO a WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 39) SELECT i, REPEAT('x', 500) FROM n;
SHOW BINLOG EVENTS IN '{file}' FROM {many_at} LIMIT 1, 1;
-- @as file many kind
SELECT '{kind}';
-- = ["Transaction_payload"]
-- -> {"operation":{"Add":{}},"bn_file":{"offset":{many}},"transaction":{"index":0,"last":false}}
-- -> {"operation":{"Add":{}},"bn_file":{"offset":{many}},"transaction":{"index":1,"last":false}}
-- -> {"operation":{"Add":{}},"bn_file":{"offset":{many}},"transaction":{"index":2,"last":true}}
SHOW BINARY LOG STATUS;
-- @as file changed_at
BEGIN;
UPDATE a SET t = 'y' WHERE i < 5;
DELETE FROM a WHERE i > 5;
COMMIT;
SHOW BINLOG EVENTS IN '{file}' FROM {changed_at} LIMIT 1, 1;
-- @as file changed kind
-- -> {"operation":{"Update":{}},"bn_file":{"offset":{changed}},"transaction":{"index":0,"last":false}}
-- -> {"operation":{"Delete":{}},"bn_file":{"offset":{changed}},"transaction":{"index":1,"last":false}}
-- -> {"operation":{"Delete":{}},"bn_file":{"offset":{changed}},"transaction":{"index":2,"last":false}}
-- -> {"operation":{"Delete":{}},"bn_file":{"offset":{changed}},"transaction":{"index":3,"last":true}}
-- @apply
-- @equal
SET binlog_transaction_compression = OFF;
INSERT INTO a VALUES (-1, 'plain');
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":-1},{"String":"plain"}]}]}},"transaction":{"index":0,"last":true}}
-- @apply
-- @apply
