-- A leader without GTIDs that has purged its first binlog: the stream begins at the place of the follower's copy.
-- @server leader --gtid-mode=OFF --enforce-gtid-consistency=OFF
CREATE DATABASE placed;
USE placed;
CREATE TABLE a (i INT PRIMARY KEY);
INSERT INTO a VALUES (1);
FLUSH BINARY LOGS;
PURGE BINARY LOGS TO 'binlog.000002';
INSERT INTO a VALUES (2);
-- @follower
CREATE DATABASE placed;
CREATE TABLE placed.a (i INT PRIMARY KEY);
INSERT INTO placed.a VALUES (1), (2);
-- @leader
SHOW BINARY LOG STATUS;
-- @as file offset
INSERT INTO a VALUES (3);
-- -> {"sequence":0,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":3}]}]}}}
FLUSH BINARY LOGS;
SHOW BINARY LOG STATUS;
-- @as newest begin
UPDATE a SET i = 10 WHERE i = 1;
-- -> {"sequence":1,"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":1}],"after_cols":[{"SignedInteger":10}]}]}}}
SHOW BINARY LOG STATUS;
-- @as newest size
SHOW BINLOG EVENTS IN '{newest}' FROM {begin} LIMIT 2, 1;
-- @as newest inside kind
SELECT {size} + 1, {inside} + 3, '{kind}';
-- @as past between kind
SELECT '{kind}';
-- = ["Table_map"]
-- Places that are none are refused.
-- @profile producer producer.start = "{newest}:{past}"
-- @start
-- @stops cdc-producer 2 the leader has no {newest}:{past}
-- @profile producer producer.start = "binlog.000001:4"
-- @run cdc-producer
-- @stops cdc-producer 2 the leader has no binlog.000001:4
-- @profile producer producer.start = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3"
-- @run cdc-producer
-- @stops cdc-producer 2 has no GTIDs
-- @profile producer kafka.topic = "{leader}_between"
-- @profile producer producer.start = "{newest}:{between}"
-- @run cdc-producer
-- @stops cdc-producer 2 the leader refuses the position
-- @profile producer kafka.topic = "{leader}"
-- @profile producer producer.start = "{file}:{offset}"
-- @apply
-- @equal
INSERT INTO a VALUES (4);
-- -> {"sequence":2,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":4}]}]}}}
