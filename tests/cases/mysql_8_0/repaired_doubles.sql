-- A repair of rows whose documents a follower of MySQL 8.0 has from text, with the doubles of its parser: they become the
-- leader's, to the last bit, and are equal from then on; whatever the follower has set for everybody.
-- @server follower 8.0
-- @alone
-- @record {"uri":"flv://mysql-srv1/repaired_80","operation":{"Query":"CREATE DATABASE repaired_80"},"context":{"database":"repaired_80","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/repaired_80"}]}
-- @record {"uri":"flv://mysql-srv1/repaired_80","operation":{"Query":"CREATE TABLE t (id INT PRIMARY KEY, j JSON)"},"context":{"database":"repaired_80","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/repaired_80/t"}]}
-- @apply
-- @follower
INSERT INTO repaired_80.t VALUES (1, '[0.41339201716594043]'), (2, '{"a": [1, 463.78841705583204]}'), (3, '[1, 0.5]');
SELECT CAST(j AS CHAR) = '[0.41339201716594043]' FROM repaired_80.t WHERE id = 1;
-- = [0]
SET GLOBAL transaction_read_only = ON;
SET GLOBAL max_join_size = 1;
SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF;
SET GLOBAL completion_type = 'RELEASE';
SET GLOBAL max_execution_time = 1;
SET GLOBAL binlog_format = 'STATEMENT';
SET GLOBAL sql_safe_updates = ON;
SET GLOBAL sql_auto_is_null = ON;
-- @record {"uri":"flv://mysql-srv1/repaired_80/t","columns":["id","j"],"key":["id"],"flags":2,"operation":{"Repair":{"keys":[{"cols":[{"SignedInteger":1}]},{"cols":[{"SignedInteger":2}]},{"cols":[{"SignedInteger":3}]}],"rows":[{"cols":[{"SignedInteger":1},{"Json":[0.41339201716594043]}]},{"cols":[{"SignedInteger":2},{"Json":{"a":[1,463.78841705583204]}}]},{"cols":[{"SignedInteger":3},{"Json":[1,0.5]}]}]}}}
-- @apply
-- @logged rows repaired … missing=0 different=2 extra=0
-- @record {"uri":"flv://mysql-srv1/repaired_80/t","columns":["id","j"],"key":["id"],"flags":2,"operation":{"Repair":{"keys":[{"cols":[{"SignedInteger":1}]},{"cols":[{"SignedInteger":2}]}],"rows":[{"cols":[{"SignedInteger":1},{"Json":[0.41339201716594043]}]},{"cols":[{"SignedInteger":2},{"Json":{"a":[1,463.78841705583204]}}]}]}}}
-- @apply
-- @logged rows repaired … missing=0 different=0 extra=0
-- @follower
SELECT CAST(j AS CHAR) FROM repaired_80.t ORDER BY id;
-- = ["[0.41339201716594043]"]
-- = ["{\"a\": [1, 463.78841705583204]}"]
-- = ["[1, 0.5]"]
