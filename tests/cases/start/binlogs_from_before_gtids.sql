-- A server that was given GTIDs later sends no transaction of before any more. Whatever would begin there is refused, also
-- by a dry run, before anything is written: producer.start still counts, and by itself its tables are copied.
-- @server leader --gtid-mode=OFF --enforce-gtid-consistency=OFF
-- @profile producer producer.start = "beginning"
CREATE DATABASE earlier;
CREATE TABLE earlier.a (i INT PRIMARY KEY);
INSERT INTO earlier.a VALUES (1);
SET GLOBAL enforce_gtid_consistency = ON;
SET GLOBAL gtid_mode = OFF_PERMISSIVE;
SET GLOBAL gtid_mode = ON_PERMISSIVE;
SET GLOBAL gtid_mode = ON;
INSERT INTO earlier.a VALUES (2);
-- @start
-- @stops cdc-producer 2 the server's first binlogs, from binlog.000001 on, have transactions without GTIDs
-- @run cdc-producer --dry-run
-- @stops cdc-producer 2 set producer.start to "copy"
-- @profile producer producer.start = "oldest"
-- @run cdc-producer
-- @stops cdc-producer 2 have transactions without GTIDs
-- @profile producer producer.start = "auto"
-- @run cdc-producer --dry-run
-- @logged and the leader had no GTIDs at first
-- @run cdc-producer
-- @logged copied a table table=earlier.a rows=2
INSERT INTO earlier.a VALUES (3);
