-- The key takes NULL on the follower: a row that another one stands in the way of does not go in with no key at all.
-- @profile consumer consumer.before_images = "ignore"
-- @differs
CREATE DATABASE key_takes_null;
CREATE TABLE key_takes_null.t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20));
INSERT INTO key_takes_null.t VALUES (1, 1, 'aaa'), (2, 2, 'bbb');
-- @apply
-- @follower
USE key_takes_null;
ALTER TABLE t DROP PRIMARY KEY, MODIFY id INT NULL, ADD UNIQUE (id);
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (7, 1, 'foreign');
-- @leader
UPDATE key_takes_null.t SET name = REPEAT(IF(id = 1, 'c', 'd'), 3);
-- @apply
-- @conflict key=id=1
-- @follower
SELECT * FROM t ORDER BY id;
-- = [1, 1, "ccc"]
-- = [2, 2, "ddd"]
