-- A view whose table is gone is left out of a leader's copy, and said to be; one that is valid is in it. Triggers and
-- events are told, for the list that a promotion needs, and not created.
-- @profile producer filters.include_dbs = ["copied_objects"]
-- @profile producer producer.start = "copy"
-- @differs copied_objects.of_u
CREATE DATABASE copied_objects;
USE copied_objects;
CREATE TABLE t (id INT PRIMARY KEY);
CREATE TABLE u (id INT);
CREATE VIEW of_t AS SELECT * FROM t;
CREATE VIEW of_u AS SELECT * FROM u;
DROP TABLE u;
SET sql_mode = 'ANSI_QUOTES', time_zone = '+05:00';
CREATE TRIGGER second BEFORE INSERT ON t FOR EACH ROW SET NEW."id" = NEW.id + 1;
CREATE TRIGGER first BEFORE INSERT ON t FOR EACH ROW PRECEDES second SET NEW.id = NEW.id * 2;
CREATE EVENT ж ON SCHEDULE EVERY 1 DAY STARTS '2100-01-01 03:00:00' DO DELETE FROM "t";
-- @start
-- @logged a view is invalid, and left out view=copied_objects.of_u
-- @run cdc-consumer
-- @run cdc-consumer --status
-- @logged TRIGGER `first` … TRIGGER `second` … time_zone = '+05:00' … EVENT `ж` … STARTS '2100-01-01 03:00:00'
-- @follower
SHOW TRIGGERS FROM copied_objects;
-- = nothing
-- @leader
INSERT INTO t VALUES (1);
