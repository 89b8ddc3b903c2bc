-- The follower's columns would round, cut or renumber the leader's values without an error: the consumer stops before
-- the first of them, also where the record that has the types was read in an earlier run. Wider columns are allowed.
CREATE DATABASE column_rounds;
USE column_rounds;
CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(10,2), at DATETIME(3), kind ENUM('a','b') CHARACTER SET utf8mb4);
CREATE TABLE keyless (v VARCHAR(9) CHARACTER SET utf8mb4, b BINARY(2));
INSERT INTO t VALUES (1, 1, '2026-01-01 00:00:00', 'a');
INSERT INTO keyless VALUES ('a', 'bb');
-- @apply
-- @follower
USE column_rounds;
ALTER TABLE t MODIFY d DECIMAL(20,1), MODIFY at DATETIME, MODIFY kind ENUM('b','a') CHARACTER SET utf8mb4;
ALTER TABLE keyless MODIFY v CHAR(20) CHARACTER SET utf8mb4;
-- @leader
INSERT INTO t VALUES (2, 2.25, '2026-01-01 00:00:00.999', 'b');
-- @apply
-- @stops cdc-consumer 3 the follower's table column_rounds.t could store other values than the leader's without an error
-- @stops cdc-consumer 3 column d is decimal(20,1) and on the leader decimal(10,2), at is datetime and on the leader datetime(3), kind is enum('b','a')
-- @stops cdc-consumer 3 ALTER TABLE `column_rounds`.`t` MODIFY `d` decimal(10,2), MODIFY `at` datetime(3), MODIFY `kind` enum('a','b') character set utf8mb4
-- @follower
ALTER TABLE t MODIFY d DECIMAL(20,4), MODIFY at DATETIME(6), MODIFY kind ENUM('a','b','c') CHARACTER SET utf8mb4;
-- @run cdc-consumer
ALTER TABLE t MODIFY at DATETIME(2);
-- @leader
INSERT INTO keyless VALUES ('a ', 'bb');
-- @apply
-- @stops cdc-consumer 3 column v is char(20) character set utf8mb4 and on the leader varchar(9) character set utf8mb4
-- @follower
ALTER TABLE keyless MODIFY v TEXT CHARACTER SET utf8mb4;
-- @run cdc-consumer
SELECT CONCAT(v, '.') FROM keyless;
-- = ["a."]
-- = ["a ."]
SELECT id, d, kind FROM t;
-- = [1, "1.0000", "a"]
-- = [2, "2.2500", "b"]
-- @leader
INSERT INTO t VALUES (3, 3.25, '2026-01-01 00:00:00.998', 'b');
-- @apply
-- @stops cdc-consumer 3 column at is datetime(2) and on the leader datetime(3) … --skip column_rounds.t leaves what
-- @run cdc-consumer --skip column_rounds.t
-- @logged skipped … could store other values
-- @follower
SELECT id FROM t;
-- = [1]
-- = [2]
-- @differs
