-- The user of the follower's capture, cdc-producer with the follower's profile, for the audit. Run by root on the
-- follower; choose a password. It reads no table.
SET sql_log_bin = 0;
CREATE USER 'cdc_capture'@'%' IDENTIFIED BY 'choose-a-password';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'cdc_capture'@'%';
