-- A leader that has purged its first binlog: the follower is a copy of it, and the stream begins behind the copy.
-- @server leader --server-id=71
CREATE DATABASE copied;
USE copied;
CREATE TABLE a (i INT PRIMARY KEY);
INSERT INTO a VALUES (1);
FLUSH BINARY LOGS;
PURGE BINARY LOGS TO 'binlog.000002';
INSERT INTO a VALUES (2);
-- @follower
CREATE DATABASE copied;
CREATE TABLE copied.a (i INT PRIMARY KEY);
INSERT INTO copied.a VALUES (1), (2);
-- @leader
SELECT @@GLOBAL.gtid_executed, SUBSTRING_INDEX(@@GLOBAL.gtid_executed, ':', 1);
-- @as held uuid
SHOW BINARY LOG STATUS;
-- @as file offset
INSERT INTO a VALUES (3);
-- -> {"sequence":0,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":3}]}]}}}
FLUSH BINARY LOGS;
UPDATE a SET i = 10 WHERE i = 1;
-- -> {"sequence":1,"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":1}],"after_cols":[{"SignedInteger":10}]}]}}}
-- What is no copy of this leader is refused.
-- @profile producer producer.start = "{held},3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3"
-- @start
-- @stops cdc-producer 2 has not executed all of
-- @profile producer producer.start = "{uuid}:1"
-- @run cdc-producer
-- @stops cdc-producer 2 purged binlogs that the copy lacks
-- @profile producer producer.start = "{file}:{offset}"
-- @run cdc-producer
-- @stops cdc-producer 2 the leader has GTIDs
-- @profile producer producer.start = "yesterday"
-- @run cdc-producer
-- @stops cdc-producer 2 is not a position to start from
-- @profile producer producer.start = "{held}"
-- @apply
-- @equal
INSERT INTO a VALUES (4);
-- -> {"sequence":2,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":4}]}]}}}
