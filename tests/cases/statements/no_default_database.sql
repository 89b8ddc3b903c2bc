-- A statement does not take the default database of the one before: without one it names its objects, or is refused.
CREATE DATABASE no_default;
USE no_default;
CREATE TABLE t (i INT);
ALTER TABLE t ADD j INT;
-- @record {"uri":"flv://mysql-srv1/no_default","operation":{"Query":"CREATE TABLE nowhere (i INT)"},"context":{"database":"","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/no_default/nowhere"}]}
-- @apply
-- @stops cdc-consumer 3 sequence 3
-- @follower
SHOW TABLES FROM no_default;
-- = ["t"]
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [2]
