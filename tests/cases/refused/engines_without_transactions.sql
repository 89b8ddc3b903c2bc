-- A table of an engine without transactions is refused, with the statements that alter all such tables at once.
-- @differs no_transactions.s no_transactions.t no_transactions.u
CREATE DATABASE no_transactions;
USE no_transactions;
CREATE TABLE t (id INT PRIMARY KEY, u INT, name VARCHAR(9)) ENGINE=MyISAM;
CREATE TABLE s (id INT) ENGINE=MEMORY;
CREATE TABLE u (id INT) ENGINE=ARCHIVE;
CREATE TABLE v (id INT) ENGINE=InnoDB;
INSERT INTO t VALUES (1, 1, 'a');
-- @apply
-- @stops cdc-consumer 3 the follower's table has the engine MyISAM, which has no transactions
-- @stops cdc-consumer 3 run on the follower: ALTER TABLE `no_transactions`.`t` ENGINE = InnoDB; ALTER TABLE `no_transactions`.`s` ENGINE = InnoDB; ALTER TABLE `no_transactions`.`u` ENGINE = InnoDB
-- @follower
USE no_transactions;
SELECT * FROM t;
-- = nothing
ALTER TABLE `no_transactions`.`s` ENGINE=InnoDB;
ALTER TABLE `no_transactions`.`t` ENGINE=InnoDB;
ALTER TABLE `no_transactions`.`u` ENGINE=InnoDB;
-- @apply
-- @follower
SELECT * FROM t;
-- = [1, 1, "a"]
