-- The user of cdc-producer on a MySQL leader. Run by root on the leader; choose a password.
SET sql_log_bin = 0;
CREATE USER 'cdc_reader'@'%' IDENTIFIED BY 'choose-a-password';
-- The binlog, and where it ends.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'cdc_reader'@'%';
-- Copies of tables and of the leader, and cdc-consumer --check --leader: definitions and rows.
GRANT SELECT, SHOW VIEW ON *.* TO 'cdc_reader'@'%';
-- Triggers and events of a copied leader, which a promotion creates; TRIGGER also for partial JSON.
GRANT TRIGGER, EVENT ON *.* TO 'cdc_reader'@'%';
