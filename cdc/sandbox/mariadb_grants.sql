-- The user of cdc-producer on a MariaDB leader. Run once, by root.
CREATE USER IF NOT EXISTS 'fluvio'@'%' IDENTIFIED BY 'fluvio4cdc!';
-- Reading tables' definitions, the binlog and its status.
GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, PROCESS, REPLICATION SLAVE, BINLOG MONITOR, SLAVE MONITOR ON *.* TO 'fluvio'@'%';
-- Not for cdc-producer: the sandbox's own client is the application that writes.
GRANT INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, LOCK TABLES, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE ON *.* TO 'fluvio'@'%';
