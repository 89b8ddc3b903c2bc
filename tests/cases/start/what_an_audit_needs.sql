-- The first start names what an audit of the follower will need, and the statement that mends a setting.
-- @alone
-- @follower
SET GLOBAL binlog_row_metadata = MINIMAL;
-- @leader
CREATE DATABASE audit_needs;
CREATE TABLE audit_needs.t (id INT PRIMARY KEY);
-- @apply
-- @logged an audit needs a capture … cdc-producer FOLLOWER_PROFILE … binlog_format=ROW … binlog_row_metadata=MINIMAL … SET PERSIST binlog_row_metadata = 'FULL'
-- @follower
SET GLOBAL binlog_row_metadata = FULL;
-- @leader
INSERT INTO audit_needs.t VALUES (1);
-- @apply
-- @silent an audit needs
