-- Rows with values that only an ALTER makes, such as a VECTOR of 5 bytes: other columns change, and the rows go.
-- Members of an ENUM or SET stay the same bytes in another character set.
-- @newer leader VECTOR
-- @newer follower VECTOR
CREATE DATABASE values_by_alter;
USE values_by_alter;
CREATE TABLE keyed (id INT PRIMARY KEY, v BLOB, e ENUM('x', x'ef') CHARACTER SET ascii, s SET('y', 'ß') CHARACTER SET latin1, n INT, ts TIMESTAMP NOT NULL DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP);
INSERT INTO keyed VALUES (1, x'0102030405', 2, 3, 1, '2002-02-02');
INSERT INTO keyed VALUES (2, x'00000000', 1, 2, 1, '2002-02-02');
ALTER TABLE keyed MODIFY v VECTOR(8);
UPDATE keyed SET n = n + id, ts = ts;
UPDATE keyed SET n = n + 1 WHERE id = 1;
UPDATE keyed SET v = NULL WHERE id = 2;
ALTER TABLE keyed CONVERT TO CHARACTER SET utf8mb4;
UPDATE keyed SET e = 3 - e, s = 1 WHERE id = 2;
INSERT INTO keyed VALUES (3, NULL, 2, 2, 1, '2002-02-02');
CREATE TABLE keyless (id INT, v BLOB, e ENUM('x', x'ef') CHARACTER SET ascii, s SET('y', 'ß') CHARACTER SET latin1, n INT, ts TIMESTAMP NOT NULL DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP);
INSERT INTO keyless VALUES (1, x'0102030405', 2, 3, 1, '2002-02-02');
INSERT INTO keyless VALUES (2, x'00000000', 1, 2, 1, '2002-02-02');
ALTER TABLE keyless MODIFY v VECTOR(8);
UPDATE keyless SET n = n + id, ts = ts;
UPDATE keyless SET n = n + 1 WHERE id = 1;
UPDATE keyless SET v = NULL WHERE id = 2;
ALTER TABLE keyless CONVERT TO CHARACTER SET utf8mb4;
UPDATE keyless SET e = 3 - e, s = 1 WHERE id = 2;
INSERT INTO keyless VALUES (3, NULL, 2, 2, 1, '2002-02-02');
-- @apply
-- @equal
DELETE FROM keyed;
DELETE FROM keyless WHERE id = 1;
