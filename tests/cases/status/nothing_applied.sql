-- cdc-consumer --status on a follower to which nothing has been applied yet, and then how far it is behind.
CREATE DATABASE status_lag;
-- @run cdc-consumer --status
-- @logged consumer     not running … checkpoint   none: nothing of this leader has been applied here
-- @apply
-- @run cdc-consumer --status
-- @logged lag          0 records
-- @leader
CREATE TABLE status_lag.a (i INT);
CREATE TABLE status_lag.b (i INT);
-- @run cdc-producer
-- @run cdc-consumer --status
-- @logged lag          2 records, at most
-- @run cdc-consumer --status --json
-- @logged "resource": "{leader}", "consumer": null, "applied": {"sequence": 0,
-- @logged "offsets": [{"topic": "{leader}", "partition": 0, "next":
-- @logged "at": "20 … +00:00"
-- @logged "newest": [{ … "statement": "CREATE DATABASE status_lag"
-- @silent CREATE TABLE
-- @logged "lag": {"records": 2, "seconds":
-- @silent "seconds": null
-- @silent "seconds": 0}
-- @silent "seconds": 0.0}
-- @run cdc-consumer --json
-- @stops cdc-consumer 2 --json goes with --status
-- @apply
