-- The follower's checkpoint is at an offset that the topic does not have.
CREATE DATABASE checkpoint_ahead;
-- @apply
-- @follower
UPDATE cdc.checkpoint SET offsets = '{"0": 500}' WHERE resource = '{leader}';
-- @apply
-- @stops cdc-consumer 2 the checkpoint is ahead of the topic: it is at offset 500, the topic ends at
-- @stops cdc-consumer 2 after sequence 0
