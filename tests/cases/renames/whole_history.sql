-- A follower that has the leader's database under another name: what it holds is the same, and so are its routines.
-- @profile consumer renames.renamed = "renamed copy"
CREATE DATABASE renamed;
USE renamed;
CREATE TABLE owner (id INT PRIMARY KEY, name VARCHAR(20));
CREATE TABLE renamed.pet (id INT PRIMARY KEY, owner INT, FOREIGN KEY (owner) REFERENCES renamed.owner (id));
INSERT INTO owner VALUES (1, 'Diane'), (2, 'Harold');
INSERT INTO pet VALUES (1, 1), (2, 2), (3, 2);
CREATE VIEW renamed.pets AS SELECT p.id, o.name FROM renamed.pet p JOIN owner o ON p.owner = o.id;
CREATE PROCEDURE forget(n INT) DELETE FROM `renamed`.pet WHERE id = n;
CALL forget(2);
CREATE TABLE swap_a (i INT);
CREATE TABLE swap_b (j INT);
RENAME TABLE swap_a TO x, renamed.swap_b TO renamed.swap_a, x TO swap_b;
INSERT INTO renamed.swap_a VALUES (7);
USE mysql;
ALTER TABLE renamed.owner ADD renamed INT DEFAULT 5;
CREATE TABLE renamed.taken AS SELECT id FROM renamed.pet;
CREATE INDEX i ON renamed.taken (id);
DROP TABLE renamed.swap_b;
ALTER DATABASE renamed CHARACTER SET latin1;
-- @apply
-- @equal
-- @follower
USE `renamed copy`;
SHOW DATABASES LIKE 'renamed';
-- = nothing
BEGIN;
CALL forget(1);
SELECT * FROM pets;
-- = [3, "Harold"]
ROLLBACK;
