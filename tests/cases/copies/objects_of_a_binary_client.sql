-- What a client with the character set binary has created may have bytes that are no text. They are copied as they are.
-- @profile producer filters.include_dbs = ["of_a_binary_client"]
-- @profile producer producer.start = "copy"
CREATE DATABASE of_a_binary_client;
USE of_a_binary_client;
CREATE TABLE t (id INT PRIMARY KEY, s VARBINARY(20));
CREATE VIEW v AS SELECT _binary'{hex ff}' AS x, _latin1'{hex e9}' AS y;
SET character_set_client = binary;
CREATE TRIGGER made BEFORE INSERT ON t FOR EACH ROW SET NEW.s = 'a{hex ff e9 80}';
CREATE EVENT daily ON SCHEDULE EVERY 1 DAY STARTS '2100-01-01 03:00:00' DO DELETE FROM t WHERE s = '{hex ff}';
CREATE PROCEDURE p() SELECT 'a{hex ff e9 80}';
SET NAMES utf8mb4;
-- @start
-- @run cdc-consumer
-- @run cdc-consumer --status
-- @logged TRIGGER `made` … EVENT `daily`
-- @leader
INSERT INTO t VALUES (1, '');
-- @apply
SELECT HEX(x), HEX(y) FROM of_a_binary_client.v;
-- @both
SELECT HEX(ROUTINE_DEFINITION) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'of_a_binary_client';
-- @both
-- The comparison of whole databases reads text.
DROP PROCEDURE of_a_binary_client.p;
DROP VIEW of_a_binary_client.v;
