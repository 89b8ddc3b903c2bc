-- An ordinary leader: its first rows were logged with MySQL's default, binlog_row_metadata = MINIMAL, so without the names
-- of their columns. The stream begins with a copy of its tables.
-- @server leader --binlog-row-metadata=MINIMAL
-- @profile producer producer.start = "auto"
CREATE DATABASE before_full;
USE before_full;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9));
INSERT INTO t VALUES (1, 'a'), (2, 'b');
SET GLOBAL binlog_row_metadata = FULL;
UPDATE t SET name = 'c' WHERE id = 2;
-- @run cdc-producer --dry-run
-- @logged and the leader has tables … or logged its first rows without the names of their columns … copies the leader … before_full.t
-- @start
INSERT INTO t VALUES (3, 'd');
-- @apply
-- @equal
