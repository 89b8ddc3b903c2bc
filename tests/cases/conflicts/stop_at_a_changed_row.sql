-- With on_conflict "stop" a changed row stops the stream and nothing of the statement is done; with before_images
-- "ignore" the row is taken as it is.
-- @profile consumer consumer.on_conflict = "stop"
CREATE DATABASE stop_at_changed;
USE stop_at_changed;
CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20), UNIQUE (name(3)));
INSERT INTO t VALUES (1, 1, 'aaa'), (2, 2, 'bbb');
-- @apply
-- @follower
UPDATE stop_at_changed.t SET name = 'AAA' WHERE id = 1;
-- @leader
UPDATE t SET name = IF(id = 1, 'ccc', 'ddd');
-- @apply
-- @stops cdc-consumer 3 Update of id=1 in flv://{leader}/stop_at_changed/t: the row has another name than the leader's had
-- @follower
SELECT * FROM stop_at_changed.t ORDER BY id;
-- = [1, 1, "AAA"]
-- = [2, 2, "bbb"]
-- @profile consumer consumer.before_images = "ignore"
-- @apply
