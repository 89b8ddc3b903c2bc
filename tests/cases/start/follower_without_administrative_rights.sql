-- The consumer's user may change databases and read the follower's binlog, and nothing else: it can't set gtid_next.
-- @profile consumer database = {user = "cdc_writer", password = "writer"}
-- The definers of its views and routines are others than the leader's.
-- @differs schema_rights_objects
-- @alone
-- @follower
DROP USER IF EXISTS cdc_writer;
CREATE USER cdc_writer IDENTIFIED BY 'writer';
GRANT ALL ON cdc.* TO cdc_writer;
GRANT ALL ON `schema\_rights%`.* TO cdc_writer;
-- @leader
CREATE DATABASE schema_rights;
CREATE DATABASE schema_rights_objects;
USE schema_rights;
CREATE TABLE t (id INT PRIMARY KEY, n INT);
INSERT INTO t VALUES (1, 1), (2, 2);
-- @run cdc-producer
-- @run cdc-consumer
-- @stops cdc-consumer 2 SESSION_VARIABLES_ADMIN ON *.* … consumer.privileges = "schema"
-- @profile consumer consumer.privileges = "schema"
-- @run cdc-consumer
-- @stops cdc-consumer 2 lacks REPLICATION SLAVE … GRANT REPLICATION SLAVE ON *.* … leave out consumer.privileges
-- @follower
GRANT REPLICATION SLAVE ON *.* TO cdc_writer;
-- @run cdc-consumer
-- @silent no client reads
-- @logged applied without administrative privileges … SQL SECURITY INVOKER
-- @logged statement applied
-- @leader
ALTER TABLE t ADD COLUMN a INT DEFAULT 3, ADD INDEX (n);
UPDATE t SET n = 5 WHERE id = 1;
CREATE TABLE copied SELECT * FROM t;
CREATE TABLE other (id INT AUTO_INCREMENT PRIMARY KEY, d DATETIME DEFAULT '2020-01-01');
INSERT INTO other (id) VALUES (1), (2);
RENAME TABLE other TO another;
CREATE DEFINER = nobody@nowhere VIEW schema_rights_objects.seen AS SELECT id FROM t;
CREATE DEFINER = root@localhost SQL SECURITY DEFINER VIEW schema_rights_objects.summed AS SELECT SUM(n) AS s FROM t;
ALTER DEFINER = nobody@nowhere VIEW schema_rights_objects.seen AS SELECT id, n FROM t;
CREATE DEFINER = root@localhost PROCEDURE schema_rights_objects.forget(n DECIMAL(5, 2)) COMMENT 'a procedure' SQL SECURITY DEFINER DELETE FROM schema_rights.t WHERE id = n;
CREATE DEFINER = root@localhost FUNCTION schema_rights_objects.twice(n INT) RETURNS VARCHAR(20) CHARSET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC RETURN n * 2;
ALTER PROCEDURE schema_rights_objects.forget SQL SECURITY DEFINER;
DROP TABLE another, copied;
DROP TABLE IF EXISTS never_there;
INSERT INTO t VALUES (3, 3, 3);
-- @apply
-- @equal
-- A database without grants.
CREATE DATABASE rights_on_nothing;
CREATE TABLE rights_on_nothing.t (id INT);
-- @apply
-- @stops cdc-consumer 3 Access denied for user 'cdc_writer'@'%' to database 'rights_on_nothing' … grant the user of the consumer's profile all
-- @follower
GRANT ALL ON rights_on_nothing.* TO cdc_writer;
-- @run cdc-consumer
-- @follower
SELECT ROUTINE_NAME, DEFINER, SECURITY_TYPE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'schema_rights_objects' ORDER BY 1;
-- = ["forget", "cdc_writer@%", "INVOKER"]
-- = ["twice", "cdc_writer@%", "INVOKER"]
SELECT TABLE_NAME, DEFINER, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'schema_rights_objects' ORDER BY 1;
-- = ["seen", "cdc_writer@%", "INVOKER"]
-- = ["summed", "cdc_writer@%", "INVOKER"]
-- Each statement's row in the ledger has the GTID that the follower's server has given it.
SELECT COUNT(*) > 12, SUM(state = 'done' AND gtid LIKE CONCAT(@@server_uuid, ':%') AND GTID_SUBSET(gtid, @@GLOBAL.gtid_executed)) = COUNT(*), COUNT(DISTINCT gtid) = COUNT(*) FROM cdc.ledger WHERE resource = '{leader}';
-- = [1, 1, 1]
