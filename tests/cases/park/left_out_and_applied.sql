-- What was left out of parked tables is applied by --retry-parked, but for what can't be repeated: a table with a left out
-- statement, or a copy, must be copied. --drop-parked gives it up: the tables go on without it.
-- @profile consumer consumer.on_refused = "park"
-- @profile consumer renames = {left_out = "left_here"}
CREATE DATABASE left_out;
USE left_out;
CREATE TABLE t (id INT PRIMARY KEY, name CHAR(9) NOT NULL);
CREATE TABLE keyless (n INT);
CREATE TABLE altered (id INT PRIMARY KEY, name CHAR(9));
CREATE TABLE dropped (id INT PRIMARY KEY, n INT);
CREATE TABLE other (id INT PRIMARY KEY);
INSERT INTO t VALUES (1, 'one');
INSERT INTO keyless VALUES (1), (1), (2);
-- @apply
-- @follower
USE left_here;
ALTER TABLE t MODIFY name CHAR(3) NOT NULL;
INSERT INTO dropped VALUES (1, 5);
-- @leader
INSERT INTO other VALUES (1);
INSERT INTO t VALUES (2, 'longer');
BEGIN;
INSERT INTO other VALUES (2);
DELETE FROM keyless WHERE n = 1 LIMIT 1;
UPDATE t SET name = 'b' WHERE id = 1;
INSERT INTO dropped VALUES (2, 2);
COMMIT;
UPDATE keyless SET n = 3;
UPDATE t SET id = 3 WHERE id = 2;
DROP TABLE dropped;
CREATE TABLE dropped (id INT PRIMARY KEY, n INT);
INSERT INTO dropped VALUES (1, 6);
INSERT INTO altered VALUES (1, 'a');
-- @apply
-- @follower
SELECT table_name, state FROM cdc.parked WHERE resource = '{leader}' ORDER BY table_name;
-- = ["keyless", "parked"]
-- = ["other", "parked"]
-- = ["t", "parked"]
-- @run cdc-consumer --retry-parked
-- @stops cdc-consumer 3 column name is char(3) … or have the table copied again: cdc-producer PROFILE --copy left_out.t … --drop-parked
-- @follower
SELECT COUNT(*) FROM cdc.parked WHERE resource = '{leader}';
-- = [3]
ALTER TABLE t MODIFY name CHAR(9) NOT NULL;
-- @run cdc-consumer --retry-parked
-- @logged applied what was left out … conflicts=0
-- @logged table no longer parked … what was left out is applied
-- @equal
-- @follower
ALTER TABLE altered DROP name;
-- @leader
INSERT INTO altered VALUES (2, 'b');
ALTER TABLE altered ADD more INT;
INSERT INTO altered VALUES (3, 'c', 3);
BEGIN;
INSERT INTO altered VALUES (4, 'd', 4);
INSERT INTO t VALUES (4, 'four');
COMMIT;
-- @apply
-- @logged table parked … left_out.altered … or, once the follower takes what was left out: cdc-consumer PROFILE --retry-parked
-- @follower
ALTER TABLE altered ADD name CHAR(9), ADD more INT;
-- @run cdc-consumer --retry-parked
-- @stops cdc-consumer 2 what was left out of left_out.altered … a statement on it was left out … cdc-producer PROFILE --copy left_out.altered
-- @run cdc-producer --copy left_out.altered
-- @apply
-- @follower
SELECT table_name, state FROM cdc.parked WHERE resource = '{leader}' ORDER BY table_name;
-- = ["altered", "copied"]
-- = ["t", "parked"]
-- @run cdc-consumer --retry-parked
-- @logged table no longer parked … left_out.altered
-- @equal
-- @follower
ALTER TABLE t MODIFY name CHAR(6) NOT NULL;
-- @leader
INSERT INTO t VALUES (5, 'too long');
INSERT INTO t VALUES (6, 'six');
-- @apply
-- @run cdc-consumer --drop-parked
-- @logged table no longer parked … left_out.t … given up
-- @leader
INSERT INTO t VALUES (7, 'last');
-- @apply
-- @follower
SELECT id FROM t ORDER BY id;
-- = [1]
-- = [3]
-- = [4]
-- = [7]
ALTER TABLE t MODIFY name CHAR(9) NOT NULL;
-- @leader
DELETE FROM t WHERE id IN (5, 6);
-- @apply
-- @conflict key=id=5 … the row is not there
-- @conflict key=id=6 … the row is not there
