-- Batches go over two connections at once where all of them add rows. A row that goes may be one that has just come: such
-- batches wait for one another. With one row in the way of somebody else's all is as on the leader, too.
-- @alone
-- @profile consumer consumer.batch_rows = 1
CREATE DATABASE who_adds;
USE who_adds;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), UNIQUE (name));
CREATE TABLE come_and_go LIKE t;
CREATE PROCEDURE add_rows(n INT) WHILE n > 0 DO INSERT INTO t VALUES (n, CONCAT('row ', n)); SET n = n - 1; END WHILE;
CREATE PROCEDURE come_and_go(n INT) WHILE n > 0 DO INSERT INTO come_and_go VALUES (n, n); DELETE FROM come_and_go WHERE id = n; INSERT INTO come_and_go VALUES (n, n); SET n = n - 1; END WHILE;
-- @apply
-- @follower
SET GLOBAL log_output = 'TABLE';
SET GLOBAL general_log = ON;
-- @leader
CALL add_rows(30);
-- @apply --until 20
-- @logged sequence=20 next_sequence=21
-- @follower
SELECT COUNT(*), MIN(id), MAX(id) FROM who_adds.t;
-- = [16, 15, 30]
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [20]
-- @run cdc-consumer
-- @silent parallel batches failed, retrying serially
-- @equal
-- @follower
SELECT COUNT(*), COUNT(DISTINCT thread_id) FROM mysql.general_log WHERE CONVERT(argument USING utf8mb4) LIKE 'INSERT INTO `who\_adds`.`t`%';
-- = [30, 4]
-- @leader
CALL come_and_go(10);
-- @apply
-- @silent parallel batches failed, retrying serially
-- @follower
SELECT COUNT(*), COUNT(DISTINCT thread_id) FROM mysql.general_log WHERE CONVERT(argument USING utf8mb4) LIKE 'INSERT INTO `who\_adds`.`come\_and\_go`%';
-- = [20, 1]
SET GLOBAL general_log = OFF;
USE who_adds;
INSERT INTO t VALUES (117, 'foreign'), (1000, 'row 123');
-- @leader
DELETE FROM t;
CALL add_rows(130);
-- @apply
-- @conflict who_adds/t key=id=117
-- @conflict who_adds/t key=id=123
-- @logged parallel batches failed, retrying serially
-- @profile consumer consumer.connections = 1
-- @follower
SET GLOBAL general_log = ON;
-- @leader
CREATE TABLE one LIKE t;
INSERT INTO one VALUES (1, '1');
INSERT INTO one VALUES (2, '2');
INSERT INTO one VALUES (3, '3');
INSERT INTO one VALUES (4, '4');
-- @apply
-- @follower
SELECT COUNT(*), COUNT(DISTINCT thread_id) FROM mysql.general_log WHERE CONVERT(argument USING utf8mb4) LIKE 'INSERT INTO `who\_adds`.`one`%';
-- = [4, 1]
-- @profile consumer consumer.connections = 3
-- @leader
CREATE TABLE three LIKE t;
CREATE TABLE no_more LIKE t;
INSERT INTO three VALUES (1, '1');
INSERT INTO three VALUES (2, '2');
INSERT INTO three VALUES (3, '3');
INSERT INTO three VALUES (4, '4');
INSERT INTO three VALUES (5, '5');
INSERT INTO three VALUES (6, '6');
INSERT INTO three VALUES (7, '7');
INSERT INTO three VALUES (8, '8');
INSERT INTO three VALUES (9, '9');
-- @apply
-- @follower
SELECT COUNT(*), COUNT(DISTINCT thread_id) FROM mysql.general_log WHERE CONVERT(argument USING utf8mb4) LIKE 'INSERT INTO `who\_adds`.`three`%';
-- = [9, 3]
SET GLOBAL general_log = OFF;
SET GLOBAL max_user_connections = 1;
-- @leader
INSERT INTO no_more VALUES (1, '1');
INSERT INTO no_more VALUES (2, '2');
INSERT INTO no_more VALUES (3, '3');
INSERT INTO no_more VALUES (4, '4');
-- @apply
-- @logged parallel batches failed, retrying serially
-- @logged MySQL error 1203
-- @follower
SET GLOBAL max_user_connections = 0;
-- @profile consumer consumer.batch_rows = 2
-- @profile consumer consumer.connections = 8
-- @leader
-- Another number of connections is the same follower's all the same.
CALL come_and_go(0);
INSERT INTO no_more VALUES (5, '5'), (6, '6'), (7, '7');
