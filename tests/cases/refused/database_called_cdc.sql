-- The leader has a database that is called as the bookkeeping's, and drops its tables: nothing of it is applied.
CREATE DATABASE before_database_cdc;
CREATE DATABASE cdc;
CREATE TABLE cdc.checkpoint (resource VARCHAR(64), worker INT, sequence INT, PRIMARY KEY (resource, worker));
INSERT INTO cdc.checkpoint VALUES ('{leader}', 0, 99);
DROP TABLE cdc.checkpoint;
DROP DATABASE cdc;
-- @apply
-- @stops cdc-consumer 2 the leader has a database cdc
-- @profile consumer filters.exclude_dbs = ["cdc"]
-- @apply
-- @follower
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}';
-- = [5]
SELECT sequence, state FROM cdc.ledger WHERE resource = '{leader}' ORDER BY sequence;
-- = [0, "done"]
-- = [1, "not applied"]
-- = [2, "not applied"]
-- = [4, "not applied"]
-- = [5, "not applied"]
