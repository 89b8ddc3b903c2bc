-- The leader deletes a row that somebody has deleted on the follower already: a conflict, and the rest is deleted.
CREATE DATABASE deleted_twice;
CREATE TABLE deleted_twice.t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20), UNIQUE (name(3)));
INSERT INTO deleted_twice.t VALUES (1, 1, 'aaa'), (2, 2, 'bbb');
-- @apply
-- @follower
DELETE FROM deleted_twice.t WHERE id = 1;
-- @leader
DELETE FROM deleted_twice.t;
-- @apply
-- @conflict uri=flv://{leader}/deleted_twice/t … key=id=1 … operation=Delete … the row is not there
