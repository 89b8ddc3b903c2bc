-- Settings of the leader with which its binlog does not have each change as rows, in full: no stream begins.
-- @alone
SET GLOBAL binlog_format = MIXED;
-- @start
-- @stops cdc-producer 2 SET PERSIST binlog_format = ROW
SET GLOBAL binlog_format = ROW;
SET GLOBAL binlog_row_metadata = MINIMAL;
-- @run cdc-producer
-- @stops cdc-producer 2 SET PERSIST binlog_row_metadata = FULL
SET GLOBAL binlog_row_metadata = FULL;
SET GLOBAL binlog_row_image = MINIMAL;
-- @run cdc-producer
-- @stops cdc-producer 2 SET PERSIST binlog_row_image = FULL
SET GLOBAL binlog_row_image = FULL;
SET GLOBAL binlog_row_value_options = PARTIAL_JSON;
-- @run cdc-producer
-- @stops cdc-producer 2 SET PERSIST binlog_row_value_options = '', or set producer.partial_json
