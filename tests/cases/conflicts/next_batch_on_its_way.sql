-- A conflict while the next batch is on its way, which takes several packets and is of more than one table.
-- @profile consumer consumer.batch_rows = 1
CREATE DATABASE next_batch;
USE next_batch;
CREATE TABLE x (id INT PRIMARY KEY, t LONGBLOB);
CREATE TABLE a LIKE x;
CREATE TABLE b LIKE x;
INSERT INTO x VALUES (0, 'old'), (1, 'old'), (2, 'old'), (3, 'old'), (4, 'old'), (5, 'old'), (6, 'old'), (7, 'old'), (8, 'old'), (9, 'old');
INSERT INTO a SELECT * FROM x;
INSERT INTO b SELECT * FROM x;
-- @apply
-- @follower
UPDATE next_batch.x SET t = 'foreign' WHERE id = 2;
-- @leader
BEGIN;
UPDATE x SET t = 'asked for' WHERE id = 3;
UPDATE a SET t = 'asked for' WHERE id = 3;
UPDATE b SET t = 'asked for' WHERE id = 3;
COMMIT;
UPDATE x SET t = 'leader''s' WHERE id = 2;
BEGIN;
-- In SQL a blob takes twice its size, in JSON four thirds: one batch, and more than a packet.
UPDATE a SET t = REPEAT('z', 222222) WHERE id = 4;
UPDATE a SET t = REPEAT('z', 222222) WHERE id = 5;
UPDATE a SET t = REPEAT('z', 222222) WHERE id = 6;
UPDATE a SET t = REPEAT('z', 222222) WHERE id = 7;
UPDATE a SET t = REPEAT('z', 222222) WHERE id = 8;
UPDATE a SET t = REPEAT('z', 222222) WHERE id = 9;
UPDATE b SET t = 'last' WHERE id = 4;
COMMIT;
-- @apply
-- @conflict uri=flv://{leader}/next_batch/x … key=id=2
