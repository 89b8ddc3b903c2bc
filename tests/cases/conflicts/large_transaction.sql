-- A row in the way of a large transaction, which is executed in parts: the conflict is settled in its part.
CREATE DATABASE large_parts;
USE large_parts;
CREATE TABLE large (id INT PRIMARY KEY, t MEDIUMTEXT);
-- @apply
-- @follower
INSERT INTO large_parts.large VALUES (13, 'foreign');
-- @leader
SET @wide = REPEAT('x', 250000);
BEGIN;
INSERT INTO large VALUES (0, @wide), (1, @wide), (2, @wide), (3, @wide);
INSERT INTO large VALUES (4, @wide), (5, @wide), (6, @wide), (7, @wide);
INSERT INTO large VALUES (8, @wide), (9, @wide), (10, @wide), (11, @wide);
INSERT INTO large VALUES (12, @wide), (13, @wide), (14, @wide), (15, @wide);
INSERT INTO large VALUES (16, @wide), (17, @wide), (18, @wide), (19, @wide);
COMMIT;
DELETE FROM large WHERE id = 0;
-- @apply
-- @conflict uri=flv://{leader}/large_parts/large … key=id=13
