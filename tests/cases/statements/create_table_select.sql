-- CREATE TABLE … SELECT is one transaction of a statement and rows, and DROP TABLE of two engines is one statement.
CREATE DATABASE select_and_drop;
USE select_and_drop;
CREATE TABLE t (i INT NOT NULL DEFAULT 0, n VARCHAR(5)) SELECT 1 AS i, 'a' AS n UNION SELECT 2, 'b';
CREATE TABLE a (i INT);
CREATE TABLE b (i INT) ENGINE=MyISAM;
-- @apply
-- @follower
SELECT * FROM select_and_drop.t;
-- = [1, "a"]
-- = [2, "b"]
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [4]
-- @record {"uri":"flv://mysql-srv1/select_and_drop","operation":{"Query":"DROP TABLE `a`,`b`"},"context":{"database":"select_and_drop","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"DropTable","uri":"flv://mysql-srv1/select_and_drop/a"},{"action":"DropTable","uri":"flv://mysql-srv1/select_and_drop/b"}]}
-- @apply
-- @follower
SHOW TABLES FROM select_and_drop;
-- = ["t"]
SELECT sequence, state FROM cdc.ledger WHERE resource = '{leader}' ORDER BY sequence;
-- = [0, "done"]
-- = [1, "done"]
-- = [3, "done"]
-- = [4, "done"]
-- = [5, "done"]
-- The numbers of the five statements are one interval.
SELECT COUNT(DISTINCT SUBSTRING_INDEX(gtid, ':', 1)), MIN(SUBSTRING_INDEX(gtid, ':', -1) + 0), MAX(SUBSTRING_INDEX(gtid, ':', -1) + 0), MIN(GTID_SUBSET(gtid, @@GLOBAL.gtid_executed)) FROM cdc.ledger WHERE resource = '{leader}';
-- = [1, 1, 5, 1]
