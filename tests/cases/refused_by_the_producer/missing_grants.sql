-- An account without privileges: each missing one is named with the statement that gives it.
-- @profile producer database.user = "nobody"
-- @profile producer database.password = "x"
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS nobody IDENTIFIED BY 'x';
-- @start
-- @stops cdc-producer 2 GRANT REPLICATION CLIENT ON *.* TO 'nobody'@'%'
-- @stops cdc-producer 2 GRANT REPLICATION SLAVE ON *.* TO 'nobody'@'%'
DROP USER nobody;
