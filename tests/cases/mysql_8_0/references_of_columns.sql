-- MySQL 8.0 ignores a foreign key in the definition of a column, and newer servers make it: there a DELETE would take rows
-- that the leader keeps.
-- @server leader 8.0
CREATE DATABASE references_of_columns;
USE references_of_columns;
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL, q INT, FOREIGN KEY (q) REFERENCES p (id) ON DELETE SET NULL);
ALTER TABLE c ADD COLUMN r INT NOT NULL DEFAULT 1 REFERENCES references_of_columns.p (id) ON DELETE CASCADE AFTER id, ADD COLUMN (s INT REFERENCES nowhere (id) MATCH FULL, t INT);
INSERT INTO p VALUES (1), (2);
INSERT INTO c VALUES (1, 1, 1, 2, 7, 7), (2, 3, 2, 1, 7, 7);
DELETE FROM p;
-- @apply
-- @equal
-- @leader
SELECT * FROM references_of_columns.c;
-- @both
-- @follower
SELECT CONSTRAINT_NAME, DELETE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'references_of_columns';
-- = ["c_ibfk_1", "SET NULL"]
