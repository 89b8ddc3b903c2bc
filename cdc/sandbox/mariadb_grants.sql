-- The user of cdc-producer on a MariaDB leader. Run once, by root.
CREATE USER IF NOT EXISTS 'fluvio'@'%' IDENTIFIED BY 'fluvio4cdc!';
-- Reading tables' definitions, the binlog and its status.
GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, PROCESS, REPLICATION SLAVE, BINLOG MONITOR, SLAVE MONITOR ON *.* TO 'fluvio'@'%';
