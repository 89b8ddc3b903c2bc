-- The user of cdc-producer and cdc-consumer, with all that both need. Run once on each server, by root.
-- Not in the binlog: the leader's stream starts with the first statement of its users.
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS 'fluvio'@'%' IDENTIFIED BY 'fluvio4cdc!';
-- Both: reading tables' definitions, the binlog and its status.
GRANT SELECT, RELOAD, PROCESS, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'fluvio'@'%';
-- Consumer: what the leader's rows and DDL do.
GRANT INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, LOCK TABLES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE, EVENT, TRIGGER ON *.* TO 'fluvio'@'%';
-- Consumer: GTIDs of its own, the leader's session settings.
GRANT REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN, SYSTEM_VARIABLES_ADMIN ON *.* TO 'fluvio'@'%';
-- Consumer: views and routines whose definer is root or another system user. Without, such a statement stops it.
GRANT SYSTEM_USER ON *.* TO 'fluvio'@'%';
-- Consumer: views and routines of other definers, who need not exist here. MySQL 8.2 made two privileges out of one.
SET @definer = IF(VERSION() REGEXP '^8\\.[01]\\.', 'SET_USER_ID', 'SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER');
SET @statement = CONCAT('GRANT ', @definer, ' ON *.* TO ''fluvio''@''%''');
PREPARE definer FROM @statement;
EXECUTE definer;
