-- Statements that maintain tables run on the follower as on a replica: what they do is met by later statements.
CREATE DATABASE upkeep;
-- -> {}
USE upkeep;
CREATE TABLE t (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id)
  (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
-- -> {}
CREATE TABLE x (id INT PRIMARY KEY, v INT);
-- -> {}
INSERT INTO x VALUES (5, 5), (12, 12);
-- -> {}
-- Now the row 5 lies in p1, and each server looks for it in p0.
ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x WITHOUT VALIDATION;
-- -> {}
ALTER TABLE t REPAIR PARTITION p1;
-- -> {"affects":[{"action":"MaintainTable","uri":"flv://mysql-srv1/upkeep/t"}]}
UPDATE t SET v = 50 WHERE id = 5;
-- -> {}
INSERT INTO x VALUES (6, 6);
-- -> {}
ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x WITHOUT VALIDATION;
-- -> {}
REPAIR TABLE upkeep.t, x;
-- -> {"affects":[{"action":"MaintainTable","uri":"flv://mysql-srv1/upkeep/t"},{"action":"MaintainTable","uri":"flv://mysql-srv1/upkeep/x"}]}
UPDATE t SET v = 60 WHERE id = 6;
-- -> {}
-- The hidden FTS_DOC_ID column is gone after a rebuild only, and with it what keeps columns from being added INSTANT.
CREATE TABLE f (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY f (a));
-- -> {}
ALTER TABLE f DROP KEY f;
-- -> {}
OPTIMIZE TABLE f;
-- -> {"operation":{"Query":"OPTIMIZE TABLE f"}}
ALTER TABLE f ADD COLUMN z INT DEFAULT 7, ALGORITHM = INSTANT;
-- -> {}
ANALYZE TABLE f UPDATE HISTOGRAM ON z WITH 3 BUCKETS;
-- -> {"operation":{"Query":"ANALYZE TABLE f UPDATE HISTOGRAM ON z WITH 3 BUCKETS"}}
-- Not in the binlog.
OPTIMIZE NO_WRITE_TO_BINLOG TABLE f;
CHECK TABLE f FOR UPGRADE;
-- The server logs it of what is not there, too.
ANALYZE TABLE nothing_of_that_name, f;
-- -> {}
ALTER TABLE t OPTIMIZE PARTITION ALL;
-- -> {"affects":[{"action":"MaintainTable","uri":"flv://mysql-srv1/upkeep/t"}]}
-- @apply
SELECT * FROM upkeep.t WHERE id IN (5, 6) ORDER BY id;
-- @both
SELECT schema_name, table_name, column_name FROM information_schema.column_statistics WHERE schema_name = 'upkeep';
-- @both
