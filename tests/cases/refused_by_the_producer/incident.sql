-- A statement on a table without transactions that was too large for the binlog: the server logs that it is missing.
-- @alone
-- @server leader
CREATE DATABASE incident;
-- -> {"sequence":0}
USE incident;
SET GLOBAL max_binlog_stmt_cache_size = 4096;
SET GLOBAL binlog_stmt_cache_size = 4096;
CREATE TABLE m (t LONGTEXT) ENGINE = MyISAM;
-- -> {"sequence":1}
-- @leader LIMITED
INSERT INTO incident.m VALUES (REPEAT('x', 100000)), (REPEAT('x', 100000));
-- @fails 1705
SHOW BINARY LOG STATUS;
-- @as file
-- @run cdc-producer
-- @stops cdc-producer 3 event 26 (Incident)
-- @stops cdc-producer 3 at binlog.00000
