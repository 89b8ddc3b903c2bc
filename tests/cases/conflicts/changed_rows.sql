-- Rows that somebody changed on the follower before the leader updates or deletes them: one conflict each.
CREATE DATABASE changed_rows;
USE changed_rows;
CREATE TABLE updated (id INT PRIMARY KEY, n INT, d DOUBLE, t TEXT, j JSON, at TIMESTAMP(3) NULL ON UPDATE CURRENT_TIMESTAMP(3));
CREATE TABLE deleted LIKE updated;
INSERT INTO updated (id, n) VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (10, 10), (11, 11), (12, 12), (13, NULL), (14, 14), (15, 15), (16, 16), (17, 17), (18, 18), (19, 19);
UPDATE updated SET d = IF(n, n, 0.5), t = 'long', j = JSON_ARRAY(n), at = NULL;
INSERT INTO deleted SELECT * FROM updated;
-- @apply
-- @follower
USE changed_rows;
UPDATE updated SET at = at, n = 77 WHERE id = 3;
UPDATE updated SET at = at, n = NULL WHERE id = 4;
UPDATE updated SET at = at, d = 1.25 WHERE id = 5;
UPDATE updated SET at = at, t = 'LONG' WHERE id = 6;
UPDATE updated SET at = at, j = NULL WHERE id = 7;
UPDATE updated SET at = NOW(3) WHERE id = 8;
UPDATE updated SET at = at, n = 0, t = 'long ' WHERE id = 9;
DELETE FROM deleted;
INSERT INTO deleted SELECT * FROM updated;
-- @leader
UPDATE updated SET n = 10 + id, d = 10 + id, t = 'new', j = JSON_ARRAY(10 + id), at = NULL;
DELETE FROM deleted;
-- @apply
-- @conflict changed_rows/updated … key=id=3 … the row has another n than the leader's had
-- @conflict changed_rows/updated … key=id=4 … the row has another n than the leader's had
-- @conflict changed_rows/updated … key=id=5 … the row has another d than the leader's had
-- @conflict changed_rows/updated … key=id=6 … the row has another t than the leader's had
-- @conflict changed_rows/updated … key=id=7 … the row has another j than the leader's had
-- @conflict changed_rows/updated … key=id=8 … the row has another at than the leader's had
-- @conflict changed_rows/updated … key=id=9 … the row has another n, t than the leader's had
-- @conflict changed_rows/deleted … key=id=3 … the row has another n than the leader's had
-- @conflict changed_rows/deleted … key=id=4 … the row has another n than the leader's had
-- @conflict changed_rows/deleted … key=id=5 … the row has another d than the leader's had
-- @conflict changed_rows/deleted … key=id=6 … the row has another t than the leader's had
-- @conflict changed_rows/deleted … key=id=7 … the row has another j than the leader's had
-- @conflict changed_rows/deleted … key=id=8 … the row has another at than the leader's had
-- @conflict changed_rows/deleted … key=id=9 … the row has another n, t than the leader's had
