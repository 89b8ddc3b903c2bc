-- The producer's user has REPLICATION SLAVE and REPLICATION CLIENT, and to copy SELECT: no more is needed.
-- @profile producer database = {user = "cdc_reader", password = "reader"}
DROP USER IF EXISTS cdc_reader;
CREATE USER cdc_reader IDENTIFIED BY 'reader';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO cdc_reader;
-- @start
CREATE DATABASE exact_rights;
USE exact_rights;
CREATE TABLE parent (id INT PRIMARY KEY, e ENUM('a', 'b'), j JSON);
CREATE TABLE child (id INT PRIMARY KEY AUTO_INCREMENT, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
INSERT INTO parent VALUES (1, 'a', '{"a": 1}'), (2, 'b', NULL);
INSERT INTO child (p) VALUES (1), (2), (2);
DELETE FROM parent WHERE id = 1;
CREATE TABLE keyless AS SELECT * FROM parent;
CREATE VIEW seen AS SELECT id FROM child;
CREATE PROCEDURE forget(n INT) DELETE FROM child WHERE id = n;
-- @apply
-- @equal
-- @run cdc-producer --copy exact_rights.*
-- @stops cdc-producer 2 GRANT SELECT ON it to our user
-- @leader
GRANT SELECT ON exact_rights.* TO cdc_reader;
-- @run cdc-producer --copy exact_rights.*
-- @follower
DELETE FROM exact_rights.parent;
-- @apply
-- @equal
