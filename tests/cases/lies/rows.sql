-- Rows of the server's own tables that somebody else wrote to the topic go nowhere, not by way of a view either, nor by
-- values that are none.
-- @record {"uri":"flv://mysql-srv1/lying_rows","operation":{"Query":"CREATE DATABASE lying_rows"},"context":{"database":"lying_rows","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/lying_rows"}]}
-- @record {"uri":"flv://mysql-srv1/lying_rows","operation":{"Query":"CREATE TABLE t (name VARCHAR(64) PRIMARY KEY)"},"context":{"database":"lying_rows","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/lying_rows/t"}]}
-- @record {"uri":"flv://mysql-srv1/lying_rows","operation":{"Query":"CREATE VIEW v AS SELECT * FROM lying_rows.t"},"context":{"database":"lying_rows","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateView","uri":"flv://mysql-srv1/lying_rows/v"}]}
-- @follower
SELECT COUNT(*) FROM mysql.time_zone;
-- @as zones
-- @record {"uri":"flv://mysql-srv1/mysql/time_zone","columns":["Use_leap_seconds"],"operation":{"Add":{"rows":[{"cols":[{"String":"Y"}]}]}}}
-- @apply
-- @follower
SELECT COUNT(*) - {zones} FROM mysql.time_zone;
-- = [0]
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [3]
-- @record {"uri":"flv://mysql-srv1/lying_rows/t","columns":["name"],"key":["name"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":"1); DROP TABLE t; --"}]}]}}}
-- @apply
-- @stops cdc-consumer 3 cannot be applied
-- @run cdc-consumer --skip {skip}
-- @record {"uri":"flv://mysql-srv1/lying_rows/v","columns":["name"],"key":["name"],"operation":{"Add":{"rows":[{"cols":[{"String":"a"}]}]}}}
-- @apply
-- @stops cdc-consumer 3 is a view on the follower
-- @follower
SELECT * FROM lying_rows.t;
-- = nothing
