-- A leader, gtid_mode OFF, that purged, lost or exchanged its binlogs: nothing is written any more.
-- @server leader --gtid-mode=OFF --enforce-gtid-consistency=OFF
-- @server follower --gtid-mode=OFF --enforce-gtid-consistency=OFF
CREATE DATABASE history;
-- -> {"sequence":0}
CREATE TABLE history.a (i INT PRIMARY KEY);
-- -> {"sequence":1}
INSERT INTO history.a VALUES (1);
-- -> {"sequence":2}
SELECT @@port;
-- @as ours
-- @run cdc-producer
-- @follower
CREATE DATABASE history;
SELECT @@port;
-- @as theirs
-- @profile producer database.port = {theirs}
-- @run cdc-producer
-- @stops cdc-producer 2 another server
-- @profile producer database.port = {ours}
-- @leader
FLUSH BINARY LOGS;
INSERT INTO history.a VALUES (2);
FLUSH BINARY LOGS;
PURGE BINARY LOGS TO 'binlog.000003';
-- @run cdc-producer
-- @stops cdc-producer 2 purged
-- A new topic; with GTIDs the leader would be copied, unless the profile says otherwise.
-- @profile producer kafka.topic = "{leader}_fresh"
-- @profile producer producer.start = "auto"
-- @run cdc-producer
-- @stops cdc-producer 2 has purged its first binlogs
-- @profile producer kafka.topic = "{leader}"
RESET BINARY LOGS AND GTIDS;
-- @run cdc-producer
-- @stops cdc-producer 2 lost binlogs
