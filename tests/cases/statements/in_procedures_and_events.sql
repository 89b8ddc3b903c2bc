-- From the first statement of a CALL, or of an event, that drops a table, has a temporary one or asks for
-- CONNECTION_ID() the leader marks all that follow as depending on their session, as it does those on the temporary
-- tables of sessions with binlog_format = STATEMENT (refused_by_the_producer/temporary_tables.sql). Each is executed of
-- which the log shows that it was on a table:
--
-- after …                           TRUNCATE  ALTER  CREATE INDEX  DROP INDEX  CREATE … LIKE
-- DROP TABLE IF EXISTS              yes       yes    yes           yes         refused
-- a temporary table                 yes       yes    yes           yes         refused
-- one that is dropped again         yes       yes    yes           yes         refused
-- one of before the CALL, read      yes       yes    yes           yes         refused
-- RENAME and DROP TABLE             yes       yes    yes           yes         refused
-- DROP TABLE in an inner procedure  yes       yes    yes           yes         refused
-- CONNECTION_ID()                   yes       yes    yes           yes         refused
--
-- CREATE … LIKE without any of these before it is executed.
CREATE DATABASE called;
USE called;
CREATE TABLE b (i INT PRIMARY KEY, j INT);
CREATE TABLE parts (i INT PRIMARY KEY) PARTITION BY HASH (i) PARTITIONS 2;
CREATE TABLE seen (n INT PRIMARY KEY AUTO_INCREMENT, who VARCHAR(9), rows_left INT);
INSERT INTO b VALUES (1, 1), (2, 2);
INSERT INTO parts VALUES (1), (2);
CREATE PROCEDURE work(IN who VARCHAR(9)) BEGIN TRUNCATE b; TRUNCATE TABLE parts; ALTER TABLE b ADD COLUMN k INT DEFAULT 7, COMMENT = 'altered'; CREATE INDEX x ON b (j); DROP INDEX x ON b; ALTER TABLE b DROP COLUMN k; INSERT INTO b VALUES (3, 3), (4, 4); CREATE INDEX y ON b (j, i); ALTER TABLE b DROP INDEX y; INSERT INTO parts VALUES (1), (2), (3); INSERT INTO seen (who, rows_left) SELECT who, COUNT(*) FROM b; END;
CREATE PROCEDURE dropping() BEGIN DROP TABLE IF EXISTS stage; CALL work('drop'); END;
CREATE PROCEDURE temporary_one() BEGIN CREATE TEMPORARY TABLE b2 (i INT); INSERT INTO b2 VALUES (1); CALL work('temp'); DROP TEMPORARY TABLE b2; END;
CREATE PROCEDURE dropped_again() BEGIN CREATE TEMPORARY TABLE b2 (i INT); DROP TEMPORARY TABLE b2; CALL work('gone'); END;
CREATE PROCEDURE reading() BEGIN DECLARE n INT; SELECT COUNT(*) INTO n FROM b3; CALL work('read'); END;
CREATE PROCEDURE renaming() BEGIN CREATE TABLE stage LIKE parts; RENAME TABLE stage TO stage2; DROP TABLE stage2; CALL work('rename'); END;
CREATE PROCEDURE inner_one() BEGIN DROP TABLE IF EXISTS stage; END;
CREATE PROCEDURE outer_one() BEGIN CALL inner_one(); CALL work('inner'); END;
CREATE PROCEDURE asking() BEGIN INSERT INTO seen (who, rows_left) VALUES ('id', CONNECTION_ID()); CALL work('asked'); END;
CREATE PROCEDURE await_seen(IN n INT) BEGIN DECLARE tries INT DEFAULT 1200; WHILE tries > 0 AND (SELECT COUNT(*) FROM seen) < n DO DO SLEEP(0.05); SET tries = tries - 1; END WHILE; END;
CALL dropping();
CALL temporary_one();
CALL dropped_again();
CREATE TEMPORARY TABLE b3 (i INT);
CALL reading();
DROP TEMPORARY TABLE b3;
CALL renaming();
CALL outer_one();
CALL asking();
CREATE EVENT e ON SCHEDULE AT CURRENT_TIMESTAMP DO CALL dropping();
CALL await_seen(9);
CREATE EVENT e2 ON SCHEDULE AT CURRENT_TIMESTAMP DO BEGIN CREATE TEMPORARY TABLE b3 (i INT); CALL temporary_one(); CALL dropped_again(); CALL reading(); END;
CALL await_seen(12);
CREATE EVENT e3 ON SCHEDULE AT CURRENT_TIMESTAMP DO CALL renaming();
CALL await_seen(13);
CREATE EVENT e4 ON SCHEDULE AT CURRENT_TIMESTAMP DO CALL outer_one();
CALL await_seen(14);
CREATE EVENT e5 ON SCHEDULE AT CURRENT_TIMESTAMP DO CALL asking();
CALL await_seen(16);
SELECT COUNT(*) FROM seen WHERE rows_left = 2;
-- = [14]
