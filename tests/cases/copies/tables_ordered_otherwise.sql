-- A chunk of a table that the follower orders otherwise, or might, is refused: its range would have other rows. So is one
-- whose rows are one on the follower: none of them may take the place of another.
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise","operation":{"Query":"CREATE DATABASE ordered_otherwise"},"context":{"database":"ordered_otherwise","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/ordered_otherwise"}]}
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise","operation":{"Query":"CREATE TABLE t0 (k VARCHAR(9) COLLATE utf8mb4_bin, PRIMARY KEY (k))"},"context":{"database":"ordered_otherwise","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/ordered_otherwise/t0"}]}
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise","operation":{"Query":"CREATE TABLE t1 (k VARCHAR(9), PRIMARY KEY (k))"},"context":{"database":"ordered_otherwise","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/ordered_otherwise/t1"}]}
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise","operation":{"Query":"CREATE TABLE t2 (k VARBINARY(9), PRIMARY KEY (k))"},"context":{"database":"ordered_otherwise","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/ordered_otherwise/t2"}]}
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise","operation":{"Query":"CREATE TABLE t3 (k ENUM('B', 'A'), PRIMARY KEY (k))"},"context":{"database":"ordered_otherwise","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/ordered_otherwise/t3"}]}
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise","operation":{"Query":"CREATE TABLE t4 (k VARCHAR(9), v INT, PRIMARY KEY (k))"},"context":{"database":"ordered_otherwise","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/ordered_otherwise/t4"}]}
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise","operation":{"Query":"CREATE TABLE one (k VARCHAR(9) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY)"},"context":{"database":"ordered_otherwise","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/ordered_otherwise/one"}]}
-- @apply
-- @follower
USE ordered_otherwise;
INSERT INTO t0 (k) VALUES ('B');
INSERT INTO t1 (k) VALUES ('B');
INSERT INTO t2 (k) VALUES ('B');
INSERT INTO t3 (k) VALUES ('B');
INSERT INTO t4 (k) VALUES ('B');
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise/t0","columns":["k"],"key":["k"],"flags":2,"operation":{"Copy":{"rows":[],"after":{"cols":[{"String":"A"}]},"upto":null,"collations":["utf8mb4_0900_ai_ci"]}}}
-- @apply
-- @stops cdc-consumer 3 orders by utf8mb4_0900_ai_ci, the
-- @apply --skip {skip}
-- @follower
SELECT COUNT(*) FROM t0;
-- = [1]
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise/t1","columns":["k"],"key":["k"],"flags":2,"operation":{"Copy":{"rows":[],"after":{"cols":[{"String":"A"}]},"upto":null}}}
-- @apply
-- @stops cdc-consumer 3 whose collation on the leader is not in the record
-- @apply --skip {skip}
-- @follower
SELECT COUNT(*) FROM t1;
-- = [1]
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise/t2","columns":["k"],"key":["k"],"flags":2,"operation":{"Copy":{"rows":[],"after":{"cols":[{"String":"A"}]},"upto":null,"collations":["utf8mb4_bin"]}}}
-- @apply
-- @stops cdc-consumer 3 which is of the type varbinary here
-- @apply --skip {skip}
-- @follower
SELECT COUNT(*) FROM t2;
-- = [1]
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise/t3","columns":["k"],"key":["k"],"flags":2,"operation":{"Copy":{"rows":[],"after":{"cols":[{"Enum":"B"}]},"upto":null}}}
-- @apply
-- @stops cdc-consumer 3 have no order, so that no range of keys can contain them
-- @apply --skip {skip}
-- @follower
SELECT COUNT(*) FROM t3;
-- = [1]
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise/t4","columns":["k"],"key":["k"],"flags":2,"operation":{"Copy":{"rows":[],"after":{"cols":[{"String":"A"}]},"upto":null}}}
-- @apply
-- @stops cdc-consumer 3 has other columns or another key
-- @apply --skip {skip}
-- @follower
SELECT COUNT(*) FROM t4;
-- = [1]
-- @record {"uri":"flv://mysql-srv1/ordered_otherwise/one","columns":["k"],"key":["k"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"String":"a"}]},{"cols":[{"String":"A"}]}],"after":null,"upto":null,"collations":["utf8mb4_bin"]}}}
-- @apply
-- @stops cdc-consumer 3 have the same value of a unique key on the follower: of 2 rows 1 are missing
-- @follower
SELECT * FROM one;
-- = nothing
