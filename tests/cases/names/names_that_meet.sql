-- The leader's Pet and pet would be one table of this follower: refused where the second one begins to be, also after a
-- restart, also where the server would not refuse the statement.
-- @server follower --lower-case-table-names=1
-- @differs
CREATE DATABASE Names_Meet;
USE Names_Meet;
CREATE TABLE Pet (i INT PRIMARY KEY);
INSERT INTO Pet VALUES (1);
-- @apply
-- @leader
DROP TABLE IF EXISTS pet;
-- @apply
-- @stops cdc-consumer 3 so the leader's Names_Meet.Pet and Names_Meet.pet would be one table … --skip
-- @run cdc-consumer --skip {skip}
-- @follower
SELECT * FROM names_meet.pet;
-- = [1]
-- @leader
CREATE TABLE IF NOT EXISTS pet (i INT PRIMARY KEY, more INT);
INSERT INTO pet VALUES (1, 1);
-- @apply
-- @stops cdc-consumer 3 so the leader's Names_Meet.Pet and Names_Meet.pet would be one table
-- @run cdc-consumer --skip {skip}
-- @stops cdc-consumer 3 Names_Meet.Pet and Names_Meet.pet would be one table
-- @profile consumer filters.exclude_tables = ["Names_Meet.Pet"]
-- @leader
RENAME TABLE pet TO kitten;
-- @apply
-- @stops cdc-consumer 3 only a part of a statement passes the filters
