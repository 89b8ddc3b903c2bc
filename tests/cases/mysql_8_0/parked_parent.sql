-- MySQL 8.0 does not log what foreign keys change: where a parent is parked, so are the tables whose rows its keys change,
-- also those of the second degree; a table whose key only forbids is not, until it follows a row that was left out. While
-- only a child is parked, the follower's own key changes its rows together with the parent's, and its copy is right.
-- @server leader 8.0
-- @profile consumer consumer.on_refused = "park"
CREATE DATABASE parked_parent;
USE parked_parent;
CREATE TABLE parent (id INT PRIMARY KEY, name CHAR(9));
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE SET NULL);
CREATE TABLE stays (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id));
CREATE TABLE whole (id INT PRIMARY KEY);
CREATE TABLE part (id INT PRIMARY KEY, w INT, name CHAR(9), FOREIGN KEY (w) REFERENCES whole (id) ON DELETE CASCADE);
INSERT INTO parent VALUES (1, 'one'), (2, 'two');
INSERT INTO child VALUES (11, 1), (12, 2);
INSERT INTO grandchild VALUES (21, 11), (22, 12);
INSERT INTO stays VALUES (31, 2);
INSERT INTO whole VALUES (1), (2);
INSERT INTO part VALUES (11, 1, 'a'), (12, 2, 'b');
-- @apply
-- @follower
USE parked_parent;
ALTER TABLE parent MODIFY name CHAR(3);
ALTER TABLE part MODIFY name CHAR(3);
-- @leader
INSERT INTO parent VALUES (3, 'three');
DELETE FROM parent WHERE id = 1;
INSERT INTO child VALUES (13, 3);
UPDATE grandchild SET c = 13 WHERE id = 22;
INSERT INTO stays VALUES (32, 2);
UPDATE part SET name = 'longer' WHERE id = 12;
DELETE FROM whole WHERE id = 1;
-- @apply
-- @logged table parked … table=parked_parent.parent … Data too long
-- @logged table parked … table=parked_parent.child … together with those of parked_parent.parent
-- @logged table parked … table=parked_parent.grandchild … together with those of parked_parent.parent
-- @logged table parked … table=parked_parent.part … Data too long
-- @follower
SELECT table_name, state FROM cdc.parked WHERE resource = '{leader}' ORDER BY table_name;
-- = ["child", "parked"]
-- = ["grandchild", "parked"]
-- = ["parent", "parked"]
-- = ["part", "parked"]
SELECT * FROM child;
-- = [11, 1]
-- = [12, 2]
SELECT * FROM grandchild;
-- = [21, 11]
-- = [22, 12]
SELECT * FROM stays;
-- = [31, 2]
-- = [32, 2]
SELECT * FROM part;
-- = [12, 2, "b"]
ALTER TABLE part MODIFY name CHAR(9);
-- @run cdc-consumer --retry-parked
-- @stops cdc-consumer 2 foreign keys change its rows, or others together with them, and the leader does not log that
-- @leader
INSERT INTO stays VALUES (33, 3);
-- @run cdc-producer --copy parked_parent.child
-- @apply
-- @logged table parked … table=parked_parent.stays … a foreign key constraint fails
-- @logged a copy of a parked table is left out: the table stays parked table=parked_parent.child
-- @follower
ALTER TABLE parent MODIFY name CHAR(9);
-- @run cdc-producer --copy parked_parent.parent
-- @apply
-- @run cdc-producer --copy parked_parent.child
-- @apply
-- @run cdc-producer --copy parked_parent.grandchild
-- @run cdc-producer --copy parked_parent.stays
-- @run cdc-producer --copy parked_parent.part
-- @apply
-- @logged table no longer parked
-- @equal
