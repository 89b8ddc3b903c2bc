-- The leader has a database that is called as the consumer's own on the follower: refused, and left out by a filter.
-- Which one is the consumer's own can't be changed later: all would be applied once more.
-- @profile consumer consumer.schema = "bookkept"
-- @profile consumer consumer.connections = 1
-- @differs bookkept
CREATE DATABASE own_schema;
USE own_schema;
CREATE TABLE a (i INT PRIMARY KEY);
INSERT INTO a VALUES (1);
-- @apply
-- @follower
SELECT sequence FROM bookkept.checkpoint WHERE resource = '{leader}';
-- = [2]
SELECT state FROM bookkept.ledger ORDER BY sequence;
-- = ["done"]
-- = ["done"]
-- @run cdc-consumer --status
-- @logged checkpoint   sequence 2, applied … ledger       2 done
-- @profile consumer consumer.schema = "cdc"
-- @run cdc-consumer
-- @stops cdc-consumer 2 is in database bookkept, not in cdc
-- @profile consumer consumer.schema = "bookkept"
-- @leader
INSERT INTO a VALUES (2);
CREATE DATABASE bookkept;
CREATE TABLE bookkept.checkpoint (i INT PRIMARY KEY);
INSERT INTO bookkept.checkpoint VALUES (1);
DROP DATABASE bookkept;
-- @apply
-- @stops cdc-consumer 2 the leader has a database bookkept
-- @stops cdc-consumer 2 consumer.schema
-- @profile consumer filters.exclude_dbs = ["bookkept"]
-- @apply
-- @equal
-- @follower
SELECT sequence FROM bookkept.checkpoint WHERE resource = '{leader}';
-- = [7]
-- @profile consumer filters.exclude_dbs = []
-- @leader
CREATE DATABASE bookkept;
-- @apply
-- @stops cdc-consumer 2 the leader has a database bookkept
-- @profile consumer filters.exclude_dbs = ["bookkept"]
-- @follower
DELETE FROM own_schema.a WHERE i = 2;
-- @leader
DELETE FROM a WHERE i = 2;
-- @apply
-- @conflict own_schema/a key=i=2
-- @follower
SELECT number FROM bookkept.conflicts;
-- = [1]
-- @profile consumer consumer.schema = ""
-- @run cdc-consumer
-- @stops cdc-consumer 2 consumer.schema
-- @profile consumer consumer.schema = "mysql"
-- @run cdc-consumer
-- @stops cdc-consumer 2 consumer.schema
-- @profile consumer consumer.schema = "a.b"
-- @run cdc-consumer
-- @stops cdc-consumer 2 consumer.schema
-- @profile consumer consumer.schema = "a`b"
-- @run cdc-consumer
-- @stops cdc-consumer 2 consumer.schema
