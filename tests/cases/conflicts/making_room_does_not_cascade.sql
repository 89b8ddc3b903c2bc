-- A row is removed to make room for the leader's: what refers to it on the follower alone stays.
-- @differs
CREATE DATABASE making_room;
CREATE TABLE making_room.t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20));
-- @apply
-- @follower
USE making_room;
CREATE TABLE child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE);
INSERT INTO t VALUES (1, 10, 'xxx');
INSERT INTO child VALUES (7, 1);
-- @leader
INSERT INTO making_room.t VALUES (1, 11, 'yyy');
-- @apply
-- @conflict uri=flv://{leader}/making_room/t … key=id=1 … operation=Add
-- @follower
SELECT * FROM t;
-- = [1, 11, "yyy"]
SELECT * FROM child;
-- = [7, 1]
