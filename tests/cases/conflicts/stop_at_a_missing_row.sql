-- With on_conflict "stop" the first conflict stops the stream, and its batch is done whole or not at all; with
-- "converge" the same stream goes on.
-- @profile consumer consumer.on_conflict = "stop"
CREATE DATABASE stop_means_stop;
USE stop_means_stop;
CREATE TABLE added (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20));
CREATE TABLE updated LIKE added;
CREATE TABLE deleted LIKE added;
INSERT INTO added VALUES (1, 1, 'aaa');
INSERT INTO updated VALUES (1, 1, 'aaa');
INSERT INTO deleted VALUES (1, 1, 'aaa');
-- @apply
-- @follower
USE stop_means_stop;
UPDATE added SET id = 5;
UPDATE updated SET id = 5;
UPDATE deleted SET id = 5;
-- @leader
INSERT INTO added VALUES (6, 6, 'fff');
INSERT INTO added VALUES (5, 9, 'eee');
-- @apply
-- @stops cdc-consumer 3 conflict: Add of id=5 in flv://{leader}/stop_means_stop/added … at sequence 8, leader position binlog.
-- @follower
SELECT * FROM added;
-- = [5, 1, "aaa"]
-- @profile consumer consumer.on_conflict = "converge"
-- @apply
-- @conflict key=id=5 … sequence=8 … operation=Add
-- @follower
INSERT INTO added VALUES (1, 1, 'aaa');
-- @profile consumer consumer.on_conflict = "stop"
-- @leader
INSERT INTO updated VALUES (6, 6, 'fff');
UPDATE updated SET name = 'b' WHERE id = 1;
-- @apply
-- @stops cdc-consumer 3 conflict: Update of id=1 in flv://{leader}/stop_means_stop/updated … at sequence 10, leader position binlog.
-- @follower
SELECT * FROM updated;
-- = [5, 1, "aaa"]
-- @profile consumer consumer.on_conflict = "converge"
-- @apply
-- @conflict key=id=1 … operation=Update
-- @profile consumer consumer.on_conflict = "stop"
-- @leader
INSERT INTO deleted VALUES (6, 6, 'fff');
DELETE FROM deleted WHERE id = 1;
-- @apply
-- @stops cdc-consumer 3 conflict: Delete of id=1 in flv://{leader}/stop_means_stop/deleted … at sequence 12, leader position binlog.
-- @follower
SELECT * FROM deleted;
-- = [5, 1, "aaa"]
-- @profile consumer consumer.on_conflict = "converge"
-- @apply
-- @conflict key=id=1 … operation=Delete
-- @follower
SELECT * FROM deleted WHERE id = 6;
-- = [6, 6, "fff"]
-- @leader
-- The first insert removed its foreign row; the other two rows of somebody else are left.
INSERT INTO deleted VALUES (5, 1, 'aaa');
-- @apply
-- @conflict key=id=5 … operation=Add
