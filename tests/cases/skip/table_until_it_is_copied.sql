-- A table that refuses many records: the stop gives both definitions and the statement that mends it, and one command
-- leaves what is refused of the table until a copy brings it. What belongs to the copy is never left out.
-- @profile consumer renames = {left_table = "left_here"}
CREATE DATABASE left_table;
USE left_table;
CREATE TABLE t (id INT PRIMARY KEY, name CHAR(9) NOT NULL, KEY (name));
CREATE TABLE other (id INT PRIMARY KEY, name CHAR(9));
-- @apply
-- @follower
USE left_here;
ALTER TABLE t MODIFY name CHAR(3) NOT NULL;
ALTER TABLE t ADD own INT;
ALTER TABLE other MODIFY name CHAR(3);
-- @leader
INSERT INTO t VALUES (1, 'long');
INSERT INTO t VALUES (2, 'b'), (3, 'longer');
ALTER TABLE t ADD own INT;
INSERT INTO other VALUES (1, 'long');
INSERT INTO t VALUES (4, 'longest', 4);
DELETE FROM t WHERE id = 3;
-- @apply
-- @stops cdc-consumer 3 column name is char(3) character set utf8mb4 NOT NULL here; on the leader it is char(9) character set utf8mb4
-- @stops cdc-consumer 3 hint: on the follower: ALTER TABLE `left_here`.`t` MODIFY `name` char(9) character set utf8mb4 NOT NULL
-- @stops cdc-consumer 3 cdc-consumer PROFILE --skip left_table.t leaves … cdc-producer PROFILE --copy left_table.t asks for that
-- @run cdc-consumer --skip left_table
-- @stops cdc-consumer 2 'left_table' is neither a record's sequence nor a table
-- @run cdc-consumer --skip left_table.t
-- @stops cdc-consumer 3 column name is char(3) … cdc-consumer PROFILE --skip left_table.t --skip left_table.other leaves
-- @stops cdc-consumer 3 to do without this record for good: cdc-consumer PROFILE --skip left_table.t --skip 6
-- @logged record skipped sequence=3
-- @logged record skipped sequence=4
-- @logged ALTER TABLE t ADD own INT … Duplicate column name 'own'
-- @follower
ALTER TABLE other MODIFY name CHAR(9);
-- @run cdc-consumer --skip left_table.t
-- @conflict key=id=3 … the row is not there
-- @logged record skipped sequence=7
-- @follower
SELECT * FROM other;
-- = [1, "long"]
SELECT * FROM t;
-- = nothing
-- @run cdc-producer --copy left_table.t
-- @apply --skip left_table.t
-- @stops cdc-consumer 3 column name is char(3)
-- @follower
ALTER TABLE t MODIFY name CHAR(9) NOT NULL;
-- @apply
-- @logged table copied
-- @equal
SELECT id, name, own FROM t ORDER BY id;
-- = [1, "long", null]
-- = [2, "b", null]
-- = [4, "longest", 4]
