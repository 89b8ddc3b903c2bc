-- Rows of a table that refers to itself go in the leader's order; without the checks the child may come first.
CREATE DATABASE row_references;
USE row_references;
CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id));
INSERT INTO t VALUES (1, NULL), (2, 1);
-- @apply
BEGIN;
DELETE FROM t WHERE id = 2;
DELETE FROM t WHERE id = 1;
COMMIT;
SET foreign_key_checks = 0;
INSERT INTO t VALUES (4, 3);
SET foreign_key_checks = 1;
INSERT INTO t VALUES (3, NULL);
INSERT INTO t VALUES (5, NULL), (6, 5), (7, 6);
DELETE FROM t WHERE id > 4 ORDER BY id DESC;
