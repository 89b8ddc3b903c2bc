-- Rows of a leader's database that is called as the bookkeeping's: refused alone, without a statement before.
CREATE DATABASE before_cdc;
-- @apply
-- @record {"uri":"flv://mysql-srv1/cdc/checkpoint","columns":["resource"],"key":["resource"],"operation":{"Delete":{"rows":[{"cols":[{"String":"{leader}"}]}]}}}
-- @apply
-- @stops cdc-consumer 2 the leader has a database cdc
-- @follower
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}';
-- = [0]
-- @profile consumer filters.exclude_dbs = ["cdc"]
-- @apply
-- @follower
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}';
-- = [1]
