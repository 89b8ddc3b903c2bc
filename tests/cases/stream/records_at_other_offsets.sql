-- The follower's checkpoint is at an offset that the topic does not have: brokers lost records, and cdc-producer wrote them again.
CREATE DATABASE other_offsets;
CREATE TABLE other_offsets.t (i INT PRIMARY KEY);
-- @apply
-- @follower
UPDATE cdc.checkpoint SET offsets = '{"0": 500}' WHERE resource = '{leader}';
-- @apply
-- @leader
INSERT INTO other_offsets.t VALUES (1);
-- @apply
-- @follower
UPDATE cdc.checkpoint SET offsets = '{"0": 1}' WHERE resource = '{leader}';
-- @apply
-- @leader
INSERT INTO other_offsets.t VALUES (2);
-- @apply
-- @follower
UPDATE cdc.checkpoint SET leader_offset = leader_offset + 1 WHERE resource = '{leader}';
-- @apply
-- @stops cdc-consumer 3 record 3 is not the record that the follower has applied: it is from leader position
