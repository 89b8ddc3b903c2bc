-- Somebody deleted a row on the follower that the leader then updates: it is inserted, and the conflict is logged.
CREATE DATABASE missing_row;
CREATE TABLE missing_row.t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20), UNIQUE (name(3)));
CREATE TABLE missing_row.keyless (a INT);
INSERT INTO missing_row.t VALUES (1, 1, 'aaa'), (2, 2, 'bbb');
INSERT INTO missing_row.keyless VALUES (1);
-- @apply
-- @follower
DELETE FROM missing_row.t WHERE id = 1;
DELETE FROM missing_row.keyless;
-- @leader
UPDATE missing_row.t SET name = REPEAT(IF(id = 1, 'c', 'd'), 3);
UPDATE missing_row.keyless SET a = 2;
-- @apply
-- @conflict uri=flv://{leader}/missing_row/t … key=id=1 … operation=Update … the row is not there
-- @conflict uri=flv://{leader}/missing_row/keyless … operation=Update
