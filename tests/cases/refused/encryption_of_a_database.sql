-- A leader whose databases are encrypted by default: the follower's user needs two more privileges, and the message names
-- them. No other leader needs them.
-- @profile consumer database = {user = "cdc_plain", password = "plain"}
-- @follower
DROP USER IF EXISTS cdc_plain;
CREATE USER cdc_plain IDENTIFIED BY 'plain';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE,
  ALTER ROUTINE, EVENT, TRIGGER, SESSION_VARIABLES_ADMIN ON *.* TO cdc_plain;
-- @leader
CREATE DATABASE encryption_plain;
CREATE TABLE encryption_plain.t (id INT PRIMARY KEY);
INSERT INTO encryption_plain.t VALUES (1);
-- @apply
-- @silent TABLE_ENCRYPTION_ADMIN
-- @equal
-- @leader
SET SESSION default_table_encryption = ON;
CREATE DATABASE encryption_by_default;
-- @apply
-- @stops cdc-consumer 3 TABLE_ENCRYPTION_ADMIN … GRANT SYSTEM_VARIABLES_ADMIN, TABLE_ENCRYPTION_ADMIN ON *.* TO the user
-- @follower
GRANT SYSTEM_VARIABLES_ADMIN, TABLE_ENCRYPTION_ADMIN ON *.* TO cdc_plain;
-- @run cdc-consumer
-- @follower
SELECT default_encryption FROM information_schema.schemata WHERE schema_name = 'encryption_by_default';
-- = ["YES"]
DROP USER cdc_plain;
