-- A record is missing: what came before is applied, and the stream stops.
CREATE DATABASE gap;
CREATE TABLE gap.t (id INT PRIMARY KEY);
INSERT INTO gap.t VALUES (1);
-- @record {"sequence":4,"uri":"flv://mysql-srv1/gap/t","columns":["id"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2}]}]}}}
-- @apply
-- @stops cdc-consumer 3 a gap: sequence 3 is missing, 4 follows
-- @stops cdc-consumer 3 at {leader}/0/
-- @stops cdc-consumer 3 leader position binlog.000003:1004
-- @follower
SELECT * FROM gap.t;
-- = [1]
