-- Rows of somebody else stand in the way of the leader's, in any unique key: they go, and one conflict is logged.
CREATE DATABASE in_the_way;
USE in_the_way;
CREATE TABLE inserted (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20), UNIQUE (name(3)));
CREATE TABLE updated LIKE inserted;
CREATE TABLE came_and_went LIKE inserted;
CREATE TABLE several (id INT PRIMARY KEY, u INT UNIQUE, v INT);
INSERT INTO updated VALUES (1, 1, 'aaa');
INSERT INTO several VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3);
-- @apply
-- @follower
USE in_the_way;
INSERT INTO inserted VALUES (1, 10, 'xxx'), (2, 20, 'yyy'), (3, 30, 'zzzzz'), (4, 40, 'www');
INSERT INTO updated VALUES (9, 5, 'xxx');
INSERT INTO came_and_went VALUES (1, 10, 'foreign');
UPDATE several SET id = 9 WHERE id = 2;
-- @leader
INSERT INTO inserted VALUES (1, 20, 'zzz1');
UPDATE updated SET u = 5;
BEGIN;
INSERT INTO came_and_went VALUES (1, 1, 'new');
DELETE FROM came_and_went;
COMMIT;
UPDATE several SET v = 7;
-- @apply
-- @conflict uri=flv://{leader}/in_the_way/inserted … key=id=1 … operation=Add
-- @conflict uri=flv://{leader}/in_the_way/updated … key=id=1 … operation=Update
-- @conflict uri=flv://{leader}/in_the_way/came_and_went … key=id=1
-- @conflict uri=flv://{leader}/in_the_way/several … key=id=2 … operation=Update
-- @follower
SELECT * FROM inserted ORDER BY id;
-- = [1, 20, "zzz1"]
-- = [4, 40, "www"]
-- @leader
-- What the leader has not is deleted, so that both can be compared.
INSERT INTO inserted VALUES (4, 40, 'www');
-- @apply
-- @conflict uri=flv://{leader}/in_the_way/inserted … key=id=4 … operation=Add
