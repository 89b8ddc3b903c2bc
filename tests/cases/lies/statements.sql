-- Somebody who may write to the topic, and not to the follower, sends statements that are not what their records say:
-- none is run, and each can be skipped as any statement that the follower refuses.
-- @record {"uri":"flv://mysql-srv1/lies","operation":{"Query":"CREATE DATABASE lies"},"context":{"database":"lies","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/lies"}]}
-- @record {"uri":"flv://mysql-srv1/lies","operation":{"Query":"CREATE TABLE t (i INT)"},"context":{"database":"lies","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/lies/t"}]}
-- @record {"uri":"flv://mysql-srv1/lies","operation":{"Query":"CREATE USER 'intruder'@'%'"},"context":{"database":"lies","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/lies/u"}]}
-- @apply
-- @stops cdc-consumer 3 not of a kind that is replicated (account)
-- @stops cdc-consumer 3 sequence 2,
-- @run cdc-consumer --skip {skip}
-- @record {"uri":"flv://mysql-srv1/lies","operation":{"Query":"CREATE TABLE u (i INT); CREATE USER 'intruder'@'%'"},"context":{"database":"lies","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/lies/u"}]}
-- @apply
-- @stops cdc-consumer 3 the follower refuses a statement
-- @stops cdc-consumer 3 sequence 3,
-- @run cdc-consumer --skip {skip}
-- @record {"uri":"flv://mysql-srv1/lies","operation":{"Query":"DROP TABLE lies.t, mysql.time_zone"},"context":{"database":"lies","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/lies/u"}]}
-- @apply
-- @stops cdc-consumer 3 affects other objects than its record says
-- @stops cdc-consumer 3 sequence 4,
-- @run cdc-consumer --skip {skip}
-- @record {"uri":"flv://mysql-srv1/lies/t","columns":["i"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
-- @record {"uri":"flv://mysql-srv1/lies","operation":{"Query":"DROP TABLE other"},"context":{"database":"lies","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"DropTable","uri":"flv://mysql-srv1/lies/t"}]}
-- @apply
-- @stops cdc-consumer 3 a statement is not run
-- @stops cdc-consumer 3 sequence 6,
-- @follower
-- What came before is committed.
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [5]
SELECT * FROM lies.t;
-- = [1]
SHOW TABLES FROM lies;
-- = ["t"]
SELECT 1 FROM mysql.user WHERE user = 'intruder';
-- = nothing
SHOW TABLES FROM mysql LIKE 'time_zone';
-- = ["time_zone"]
