-- MySQL 8.0 has one privilege for what two are for since 8.2: the GRANT that the consumer asks for is one of this server.
-- @server follower 8.0
-- @profile consumer database = {user = "cdc_narrow", password = "narrow"}
-- @follower
DROP USER IF EXISTS cdc_narrow;
CREATE USER cdc_narrow IDENTIFIED BY 'narrow';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE,
  ALTER ROUTINE, EVENT, TRIGGER, SYSTEM_VARIABLES_ADMIN ON *.* TO cdc_narrow;
-- @leader
CREATE DATABASE definers_80;
USE definers_80;
CREATE TABLE t (id INT PRIMARY KEY);
CREATE DEFINER = nobody@nowhere VIEW seen AS SELECT 1;
INSERT INTO t VALUES (2);
-- @apply
-- @logged definer is not our user … GRANT SET_USER_ID ON *.* TO 'cdc_narrow'@'%'
-- @stops cdc-consumer 3 SET_USER_ID … hint: on the follower: GRANT … SET_USER_ID
-- @follower
GRANT SET_USER_ID ON *.* TO cdc_narrow;
-- @run cdc-consumer
-- @logged system user will stop
SELECT * FROM definers_80.t;
-- = [2]
DROP USER cdc_narrow;
