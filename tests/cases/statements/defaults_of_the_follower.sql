-- The follower's own defaults change no table. The engine of a table that names none is not in the leader's log: on
-- the follower it must have transactions.
-- @server follower --default-storage-engine=MyISAM --sql-generate-invisible-primary-key=ON --lc-time-names=de_DE --auto-increment-increment=5 --auto-increment-offset=2
-- @differs defaults.b
CREATE DATABASE defaults;
CREATE TABLE defaults.a (i INT);
INSERT INTO defaults.a VALUES (1);
ALTER TABLE defaults.a ADD m VARCHAR(9) DEFAULT (MONTHNAME('2024-05-06'));
CREATE TABLE defaults.c (i INT PRIMARY KEY, n INT, KEY (n));
INSERT INTO defaults.c VALUES (1, 0), (2, 0);
ALTER TABLE defaults.c MODIFY n INT AUTO_INCREMENT;
SET default_storage_engine = MyISAM;
CREATE TABLE defaults.b (i INT);
-- @apply
SELECT engine FROM information_schema.tables WHERE table_schema = 'defaults' AND table_name = 'b';
-- = ["MyISAM"]
-- @follower
SELECT engine FROM information_schema.tables WHERE table_schema = 'defaults' AND table_name = 'b';
-- = ["InnoDB"]
