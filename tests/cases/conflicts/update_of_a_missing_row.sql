-- Somebody deleted a row on the follower that the leader then updates: it is inserted, and the conflict is logged.
CREATE DATABASE missing_row;
CREATE TABLE missing_row.t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20));
INSERT INTO missing_row.t VALUES (1, 1, 'aaa'), (2, 2, 'bbb');
-- @apply
-- @follower
DELETE FROM missing_row.t WHERE id = 1;
-- @leader
UPDATE missing_row.t SET name = REPEAT('c', 3);
-- @apply
-- @conflict key=id=1 … operation=Update … the row is not there
