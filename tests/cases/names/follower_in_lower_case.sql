-- The follower has all names in lower case, the leader as they were given: what both hold is the same but for that.
-- @server follower --lower-case-table-names=1
-- @profile consumer filters.exclude_tables = ["Names_Here.Left_*"]
-- @profile consumer consumer = {triggers = "drop"}
CREATE DATABASE Names_Here;
USE Names_Here;
CREATE TABLE Owner (Id INT PRIMARY KEY AUTO_INCREMENT, Name VARCHAR(20));
CREATE TABLE Pet (Id INT PRIMARY KEY, Owner INT, FOREIGN KEY (Owner) REFERENCES Owner (Id) ON DELETE CASCADE);
CREATE TABLE Left_Out (i INT);
INSERT INTO Left_Out VALUES (1);
INSERT INTO Owner (Name) VALUES ('Diane'), ('Harold');
INSERT INTO Pet VALUES (1, 1), (2, 2), (3, 2);
CREATE TABLE Keyless (D DOUBLE, J JSON);
INSERT INTO Keyless VALUES (1, '{"a": 1}'), (1, '{"a": 1}'), (2, NULL);
DROP TABLE Left_Out;
-- @apply
-- @equal
-- The follower's triggers are found under the names that it has.
-- @follower
CREATE TRIGGER names_here.again AFTER INSERT ON pet FOR EACH ROW INSERT INTO keyless VALUES (9, NULL);
-- @leader
INSERT INTO Pet VALUES (4, 1);
DELETE FROM Owner WHERE Id = 1;
ALTER TABLE Pet ADD Born DATE, ADD INDEX By_Birth (Born);
UPDATE Pet SET Born = '2020-02-29' WHERE Id = 2;
ALTER TABLE Pet DROP FOREIGN KEY Pet_ibfk_1;
DELETE FROM Keyless LIMIT 1;
CREATE TABLE Names_Here.`ÖSTERREICH` AS SELECT Id FROM Pet;
CREATE VIEW Pets AS SELECT Id FROM Names_Here.Pet;
RENAME TABLE Keyless TO `Key LESS`, `ÖSTERREICH` TO Austria;
UPDATE `Key LESS` SET D = D + 1;
CREATE DATABASE Names_Gone;
CREATE TABLE Names_Gone.T (i INT);
INSERT INTO Names_Gone.T VALUES (1);
DROP DATABASE Names_Gone;
-- @apply
-- @logged trigger dropped
-- @equal
-- A name is free again in any spelling.
-- @leader
DROP TABLE Austria;
CREATE TABLE austria (i INT PRIMARY KEY);
INSERT INTO austria VALUES (1);
CREATE DATABASE names_gone;
CREATE TABLE names_gone.t (i INT);
INSERT INTO names_gone.t VALUES (2);
