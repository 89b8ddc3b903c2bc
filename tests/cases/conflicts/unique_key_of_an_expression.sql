-- A unique key of an expression is in the way only where it clashes; which row that is no record says.
CREATE DATABASE of_an_expression;
USE of_an_expression;
CREATE TABLE t (id INT PRIMARY KEY, u INT, name VARCHAR(20), UNIQUE ((LOWER(name))));
INSERT INTO t VALUES (1, 1, 'aaa');
-- @apply
-- @follower
USE of_an_expression;
UPDATE t SET u = 9, name = 'foreign' WHERE id = 1;
-- @leader
UPDATE t SET u = 2, name = 'bbb';
-- @apply
-- @conflict key=id=1 … operation=Update
-- @follower
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (5, 5, 'CCC');
-- @leader
UPDATE t SET u = 3, name = 'ccc';
-- @apply
-- @stops cdc-consumer 3 the record does not show which row clashes
-- @stops cdc-consumer 3 't.functional_index'
-- @follower
SELECT * FROM t;
-- = [5, 5, "CCC"]
DELETE FROM t;
-- @apply
-- @conflict key=id=1 … operation=Update
