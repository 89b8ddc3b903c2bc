-- The user of cdc-consumer and cdc-seed on a follower. Run by root on the follower; choose a password.
SET sql_log_bin = 0;
CREATE USER 'cdc_applier'@'%' IDENTIFIED BY 'choose-a-password';
-- The leader's rows and statements.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE,
  ALTER ROUTINE, EVENT, TRIGGER ON *.* TO 'cdc_applier'@'%';
-- A GTID for each statement, and the settings of the leader's session.
GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'cdc_applier'@'%';
-- Views and routines of other definers: of root, and of users who need not exist here. MySQL 8.2 made two privileges
-- out of one.
GRANT SYSTEM_USER ON *.* TO 'cdc_applier'@'%';
SET @definer = IF(VERSION() REGEXP '^8\\.[01]\\.', 'SET_USER_ID', 'SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER');
SET @statement = CONCAT('GRANT ', @definer, ' ON *.* TO ''cdc_applier''@''%''');
PREPARE definer FROM @statement;
EXECUTE definer;
