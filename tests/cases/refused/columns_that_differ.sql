-- The follower's table lacks a column, has a narrower one, or is not there: each stop says how it is mended.
CREATE DATABASE columns_differ;
USE columns_differ;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9), size DECIMAL(5,2) UNSIGNED, kind TINYINT UNSIGNED);
-- @apply
-- @follower
USE columns_differ;
ALTER TABLE t DROP COLUMN size, MODIFY kind TINYINT;
-- @leader
INSERT INTO t VALUES (1, 'a', 1.5, 200);
-- @apply
-- @stops cdc-consumer 3 there is no column size here; on the leader it is decimal(5,2) unsigned … ALTER TABLE `columns_differ`.`t` ADD COLUMN `size` decimal(5,2) unsigned
-- @follower
ALTER TABLE columns_differ.t ADD COLUMN size decimal(5,2) unsigned;
-- @run cdc-consumer
-- @stops cdc-consumer 3 column kind is tinyint here; on the leader it is tinyint unsigned
-- @follower
ALTER TABLE columns_differ.t MODIFY kind TINYINT UNSIGNED;
RENAME TABLE columns_differ.t TO columns_differ.away;
-- @run cdc-consumer
-- @stops cdc-consumer 3 create the table as on the leader (SHOW CREATE TABLE columns_differ.t there) … --skip columns_differ.t
-- @follower
RENAME TABLE columns_differ.away TO columns_differ.t;
-- @run cdc-consumer
SELECT id, name, size, kind FROM columns_differ.t;
-- = [1, "a", "1.50", 200]
-- @differs columns_differ
