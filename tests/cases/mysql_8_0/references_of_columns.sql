-- MySQL 8.0 ignores a foreign key in the definition of a column, and newer servers make it: there a DELETE would take rows
-- that the leader keeps. So does an engine without foreign keys, where the statement does not name it: the log shows it.
-- @server leader 8.0
-- @profile producer filters.exclude_tables = ["references_of_columns.gone"]
-- @differs references_of_columns.m references_of_columns.gone
CREATE DATABASE references_of_columns;
USE references_of_columns;
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL, q INT, FOREIGN KEY (q) REFERENCES p (id) ON DELETE SET NULL);
ALTER TABLE c ADD COLUMN r INT NOT NULL DEFAULT 1 REFERENCES references_of_columns.p (id) ON DELETE CASCADE AFTER id, ADD COLUMN (s INT REFERENCES nowhere (id) MATCH FULL, t INT);
INSERT INTO p VALUES (1), (2);
INSERT INTO c VALUES (1, 1, 1, 2, 7, 7), (2, 3, 2, 1, 7, 7);
DELETE FROM p;
CREATE TABLE gone (id INT PRIMARY KEY);
SET foreign_key_checks = 0;
CREATE TABLE d (id INT PRIMARY KEY, g INT, FOREIGN KEY (g) REFERENCES gone (id) ON UPDATE CASCADE);
SET foreign_key_checks = 1;
-- @apply
-- @logged cdc-producer rows change without a record … tables="references_of_columns.d by references_of_columns.gone"
-- @equal
-- @leader
SELECT * FROM references_of_columns.c;
-- @both
-- @follower
SELECT CONSTRAINT_NAME, DELETE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'references_of_columns' ORDER BY 1;
-- = ["c_ibfk_1", "SET NULL"]
-- = ["d_ibfk_1", "NO ACTION"]
-- @leader
SET default_storage_engine = MyISAM;
CREATE TABLE m (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
SET default_storage_engine = DEFAULT;
INSERT INTO p VALUES (1), (2);
INSERT INTO m VALUES (1, 1), (2, 2);
DELETE FROM p WHERE id = 1;
-- @apply
-- @stops cdc-consumer 3 would enforce a foreign key that the leader's may ignore … --skip
-- @follower
CREATE TABLE references_of_columns.m (id INT PRIMARY KEY, p INT);
-- @run cdc-consumer --skip {skip}
-- @leader
SELECT * FROM references_of_columns.m;
-- @both
