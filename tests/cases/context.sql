-- What a statement means depends on its session: each variable that the leader logs, away from its default.
CREATE DATABASE context CHARACTER SET utf8mb4;
-- -> {"sequence":0,"context":{"database":"context","default_table_encryption":false}}
USE context;
CREATE TABLE d (id INT PRIMARY KEY, day DATE, seconds INT, at TIMESTAMP NULL);
-- -> {"sequence":1,"context":{"sql_require_primary_key":false,"foreign_key_checks":true,"unique_checks":true}}
INSERT INTO d VALUES (1, '2024-05-06', 1000000000, '2024-01-01 00:00:00');
-- -> {"sequence":2}
SET time_zone = '+05:00', timestamp = 1000000000.123456;
ALTER TABLE d ADD n DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6);
-- -> {"sequence":3,"context":{"time_zone":"+05:00","timestamp_us":1000000000123456}}
ALTER TABLE d ADD f DATETIME DEFAULT (FROM_UNIXTIME(seconds)), ADD g DATETIME AS (at) STORED, ADD h TIMESTAMP DEFAULT '2001-09-09 06:46:40';
-- -> {"sequence":4,"context":{"time_zone":"+05:00","explicit_defaults_for_timestamp":true}}
ALTER TABLE d MODIFY at DATETIME;
-- -> {"sequence":5,"context":{"time_zone":"+05:00"}}
SET time_zone = '+00:00', timestamp = DEFAULT, lc_time_names = 'de_DE';
ALTER TABLE d ADD m VARCHAR(20) DEFAULT (DATE_FORMAT(day, '%M')), ADD w VARCHAR(20) AS (DAYNAME(day)) STORED;
-- -> {"sequence":6,"context":{"lc_time_names":4}}
SET lc_time_names = DEFAULT, explicit_defaults_for_timestamp = OFF;
CREATE TABLE e (i INT, t TIMESTAMP);
-- -> {"sequence":7,"context":{"explicit_defaults_for_timestamp":false}}
SET explicit_defaults_for_timestamp = ON, default_collation_for_utf8mb4 = 'utf8mb4_general_ci';
CREATE TABLE f (t CHAR(3) CHARACTER SET utf8mb4);
-- -> {"sequence":8,"context":{"default_collation_for_utf8mb4":"utf8mb4_general_ci"}}
SET default_collation_for_utf8mb4 = DEFAULT, collation_server = 'latin1_bin';
CREATE DATABASE context2;
-- -> {"sequence":9,"context":{"server_collation":"latin1_bin"}}
SET collation_server = DEFAULT, collation_database = 'latin1_german1_ci';
CREATE TABLE g (t CHAR(3));
-- -> {"sequence":10,"context":{"database_collation":"latin1_german1_ci"}}
USE context;
SET NAMES latin1 COLLATE latin1_german2_ci;
CREATE VIEW v AS SELECT 'a' AS a, 'a' = 'A' AS same;
-- -> {"sequence":11,"context":{"charset":"latin1","collation":"latin1_german2_ci"}}
SET NAMES utf8mb4;
SET foreign_key_checks = 0, unique_checks = 0;
CREATE TABLE h (i INT, FOREIGN KEY (i) REFERENCES nowhere (i));
-- -> {"sequence":12,"context":{"foreign_key_checks":false,"unique_checks":false}}
SET foreign_key_checks = 1, unique_checks = 1, sql_require_primary_key = ON;
CREATE TABLE i (i INT PRIMARY KEY);
-- -> {"sequence":13,"context":{"sql_require_primary_key":true}}
SET sql_require_primary_key = OFF, sql_generate_invisible_primary_key = ON;
CREATE TABLE j (i INT);
-- -> {"sequence":14,"operation":{"Query":"CREATE TABLE `j` (\n  `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,\n  `i` int DEFAULT NULL,\n  PRIMARY KEY (`my_row_id`)\n)"}}
SET sql_generate_invisible_primary_key = OFF, auto_increment_increment = 7, auto_increment_offset = 3;
CREATE TABLE k (i INT PRIMARY KEY, n INT, KEY (n)) SELECT 1 AS i, 0 AS n UNION SELECT 2, 0;
-- -> {"sequence":15,"context":{"auto_increment_increment":7,"auto_increment_offset":3}}
-- -> {"sequence":16}
ALTER TABLE k MODIFY n INT AUTO_INCREMENT;
-- -> {"sequence":17,"context":{"auto_increment_increment":7,"auto_increment_offset":3}}
SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT, sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,NO_ZERO_IN_DATE';
ALTER TABLE "k" COMMENT 'C:\', ADD "a""b" DATE DEFAULT '0000-00-00', RENAME "l";
-- -> {"sequence":18,"context":{"sql_mode":"REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI,NO_BACKSLASH_ESCAPES,NO_ZERO_IN_DATE"},"affects":[{"action":"AlterTable","uri":"flv://mysql-srv1/context/k"},{"action":"RenameTable","uri":"flv://mysql-srv1/context/k","to":"flv://mysql-srv1/context/l"}]}
SET sql_mode = DEFAULT, character_set_connection = 'utf16';
CREATE TABLE m (i INT DEFAULT '1', t CHAR(3) DEFAULT 'a', g INT AS (CHAR_LENGTH(t)) STORED);
-- -> {"sequence":19,"context":{"charset":"utf8mb4","collation":"utf16_general_ci"}}
SET NAMES utf8mb4;
SET lc_time_names = 'de_DE', time_zone = '-03:00', sql_mode = 'NO_BACKSLASH_ESCAPES', collation_connection = 'utf32_bin';
CREATE VIEW n AS SELECT i FROM m WHERE t = 'a\';
-- -> {"sequence":20,"context":{"collation":"utf32_bin","lc_time_names":4}}
SET NAMES utf8mb4;
SET lc_time_names = DEFAULT, sql_mode = DEFAULT, collation_connection = 'ucs2_bin';
ALTER TABLE m ADD u DATE DEFAULT '2001-01-01';
-- -> {"sequence":21,"context":{"collation":"ucs2_bin"}}
SET NAMES utf8mb4;
ALTER TABLE i ADD j INT, ADD FOREIGN KEY (j) REFERENCES i (i);
-- -> {"sequence":22,"context":{"engine":"InnoDB"}}
