-- A statement is larger than the packets that the follower takes: the line that stops names the setting.
-- @alone
CREATE DATABASE larger_than_packets;
USE larger_than_packets;
CREATE TABLE t (i INT);
-- @apply
-- @follower
SET GLOBAL max_allowed_packet = 512000;
-- @leader
SET @long = CONCAT('ALTER TABLE t COMMENT ''x'' /* ', REPEAT('x', 900000), ' */');
PREPARE long_statement FROM @long;
EXECUTE long_statement;
-- @apply
-- @stops cdc-consumer 3 a statement needs a packet of 900 … on the follower: SET PERSIST max_allowed_packet = 1048576;
-- @follower
SET GLOBAL max_allowed_packet = 1048576;
-- @apply
-- @follower
SELECT state FROM cdc.ledger WHERE resource = '{leader}' AND sequence = 2;
-- = ["done"]
