-- A replica that does not log what it replicates. As long as it is none, its binlog has all of its changes.
-- @server leader --log-replica-updates=OFF
-- @start
CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1;
-- @run cdc-producer
-- @stops cdc-producer 2 start it with --log-replica-updates
