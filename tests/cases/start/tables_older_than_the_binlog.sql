-- A leader whose binlogs begin behind its tables, as after RESET or with a data directory that was copied: nothing is
-- purged, and yet no binlog has these tables. Nobody writes to one of them any more. The stream begins with a copy.
-- @server leader
-- @profile producer producer.start = "auto"
CREATE DATABASE older;
CREATE TABLE older.quiet (id INT PRIMARY KEY);
INSERT INTO older.quiet VALUES (1), (2);
DO SLEEP(1.1);
RESET BINARY LOGS AND GTIDS;
CREATE TABLE older.busy (id INT PRIMARY KEY);
INSERT INTO older.busy VALUES (3);
-- @run cdc-producer --dry-run
-- @logged and the leader has tables that are older than its binlogs … copies the leader … older.quiet
-- @start
INSERT INTO older.busy VALUES (4);
-- @apply
-- @equal
