-- The leader has a database by the new name, too: refused before anything of it is applied. Filters go by the leader's
-- names, so one that leaves it out is the way on. The types of its columns are not taken for those of the other one's.
-- @profile consumer renames.name_taken = "name_taken_2"
-- @differs name_taken_2
CREATE DATABASE name_taken;
CREATE TABLE name_taken.t (i INT);
CREATE DATABASE name_taken_2;
-- @apply
-- @stops cdc-consumer 2 two of the leader's databases would have the name name_taken_2 on the follower: name_taken_2 itself and name_taken
-- @leader
USE name_taken_2;
CREATE TABLE name_taken_2.t (i BIGINT);
BEGIN;
INSERT INTO name_taken.t VALUES (2);
INSERT INTO name_taken_2.t VALUES (1);
COMMIT;
-- @apply
-- @stops cdc-consumer 2 two of the leader's databases would have the name
-- @follower
SHOW DATABASES LIKE 'name_taken%';
-- = ["name_taken_2"]
-- @profile consumer filters.exclude_dbs = ["name_taken_2"]
-- @apply
-- @follower
SELECT * FROM name_taken_2.t;
-- = [2]
SHOW DATABASES LIKE 'name_taken%';
-- = ["name_taken_2"]
SELECT table_name, columns_json FROM cdc.types WHERE resource = '{leader}';
-- = ["t", "{\"i\": \"int\"}"]
-- @leader
ALTER TABLE name_taken_2.t ADD j INT;
-- On the follower a view has the name of the table.
CREATE VIEW name_taken.v AS SELECT 1 AS i;
CREATE TABLE name_taken_2.v (i INT);
INSERT INTO name_taken_2.v VALUES (1);
-- @apply
-- @follower
SELECT table_name, columns_json FROM cdc.types WHERE resource = '{leader}';
-- = ["t", "{\"i\": \"int\"}"]
