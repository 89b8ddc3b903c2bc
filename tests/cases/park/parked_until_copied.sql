-- With consumer.on_refused = "park" a refused record stops nothing: its transaction and all later ones on its table, or
-- on tables that change together with it, are left out as wholes; other tables go on. A copy of each brings them back.
-- @profile consumer consumer.on_refused = "park"
-- @profile consumer renames = {parked_db = "parked_here"}
CREATE DATABASE parked_db;
USE parked_db;
CREATE TABLE t (id INT PRIMARY KEY, name CHAR(9) NOT NULL);
CREATE TABLE together (id INT PRIMARY KEY);
CREATE TABLE other (id INT PRIMARY KEY);
INSERT INTO t VALUES (1, 'one');
-- @apply
-- @follower
USE parked_here;
ALTER TABLE t MODIFY name CHAR(3) NOT NULL;
-- @leader
INSERT INTO other VALUES (1);
BEGIN;
INSERT INTO other VALUES (2);
INSERT INTO t VALUES (2, 'b');
COMMIT;
INSERT INTO t VALUES (3, 'longer');
INSERT INTO t VALUES (4, 'd');
INSERT INTO other VALUES (3);
-- @apply
-- @logged table parked … table=parked_db.t sequence=8 … Data too long … hint="cdc-producer PROFILE --copy parked_db.t; or
-- @leader
BEGIN;
INSERT INTO together VALUES (1);
UPDATE t SET name = 'x';
COMMIT;
INSERT INTO together VALUES (2);
ALTER TABLE t ADD more INT;
CREATE TABLE new LIKE t;
INSERT INTO new VALUES (1, 'enough', 1);
INSERT INTO other VALUES (4);
-- @apply
-- @logged table parked … table=parked_db.together … changed together with parked_db.t
-- @logged statement left out … ALTER TABLE t ADD more INT
-- @logged statement left out … CREATE TABLE new LIKE t
-- @follower
SELECT * FROM other;
-- = [1]
-- = [2]
-- = [3]
-- = [4]
SELECT id, name FROM t ORDER BY id;
-- = [1, "one"]
-- = [2, "b"]
SELECT * FROM together;
-- = nothing
SELECT table_name, state, sequence FROM cdc.parked WHERE resource = '{leader}' ORDER BY sequence, table_name;
-- = ["t", "parked", 8]
-- = ["together", "parked", 11]
-- = ["new", "parked", 15]
-- @run cdc-consumer --status
-- @logged parked … parked_db.t … since sequence 8
-- @leader
DROP TABLE new;
-- @run cdc-producer --copy parked_db.t
-- @apply
-- @logged table no longer parked table=parked_db.new
-- @logged a copy of a parked table is left out: the table stays parked table=parked_db.t … other columns
-- @follower
ALTER TABLE t MODIFY name CHAR(9) NOT NULL, ADD more INT;
-- @leader
DELETE FROM t WHERE id = 4;
-- @run cdc-producer --copy parked_db.t
-- @apply
-- @follower
SELECT table_name, state FROM cdc.parked WHERE resource = '{leader}' ORDER BY table_name;
-- = ["t", "copied"]
-- = ["together", "parked"]
-- @leader
BEGIN;
INSERT INTO together VALUES (5);
INSERT INTO t VALUES (5, 'five', 5);
COMMIT;
-- @run cdc-producer --copy parked_db.together
-- @apply
-- @logged table no longer parked
-- @follower
SELECT COUNT(*) FROM cdc.parked WHERE resource = '{leader}';
-- = [0]
