-- Statements of a client in cp1251: names, comments and members with letters of its own; statements of all kinds.
-- The leader shows no collation of a column that it made from a query, and the follower does.
-- @newer leader routines in JavaScript
-- @newer follower routines in JavaScript
-- @differs "client_cp1251.cp1251 ЂЃѓЉЊ r" "client_cp1251.cp1251 ЂЃѓЉЊ a"
CREATE DATABASE client_cp1251;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_cp1251"}]}
USE client_cp1251;
SET NAMES cp1251;
CREATE TABLE `cp1251 ЂЃѓЉЊ` (`cp1251 ЂЃѓЉЊ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ЂЃѓЉЊ' COMMENT 'ЂЃѓЉЊЌЋЏђљњќћџЎўЈҐЁЄЇІіґµёєјЅѕїАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя', e ENUM('ЂЃѓЉЊ', 'b')) COMMENT 'ЂЃѓЉЊ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A"}]}
CREATE TABLE `cp1251 ЂЃѓЉЊ q` SELECT 'ЂЃѓЉЊ' AS `ЂЃѓЉЊ`, `cp1251 ЂЃѓЉЊ` FROM `cp1251 ЂЃѓЉЊ`;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20q"}]}
CREATE TEMPORARY TABLE `ЂЃѓЉЊ t` (`ЂЃѓЉЊ` INT COMMENT 'ЂЃѓЉЊ');
CREATE TABLE `cp1251 ЂЃѓЉЊ l` LIKE `ЂЃѓЉЊ t`;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20l"}]}
DROP TABLE IF EXISTS `ЂЃѓЉЊ t`;
CREATE PROCEDURE `cp1251 ЂЃѓЉЊ`(`ЂЃѓЉЊ` INT, b ENUM('ЂЃѓЉЊ')) COMMENT 'ЂЃѓЉЊ''\\\n' NO SQL SELECT 'ЂЃѓЉЊ', `ЂЃѓЉЊ`;
-- -> {"affects":[{"action":"CreateProcedure","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A"}]}
CREATE FUNCTION `cp1251 ЂЃѓЉЊ`(a INT) RETURNS ENUM('ЂЃѓЉЊ') CHARSET utf8mb4 DETERMINISTIC COMMENT 'ЂЃѓЉЊ' RETURN 'ЂЃѓЉЊ';
-- -> {"affects":[{"action":"CreateFunction","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A"}]}
CREATE FUNCTION `cp1251 ЂЃѓЉЊ j`(`ЂЃѓЉЊ` INT) RETURNS INT DETERMINISTIC LANGUAGE JAVASCRIPT AS 'return "ЂЃѓЉЊ"';
-- -> {"affects":[{"action":"CreateFunction","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20j"}]}
CREATE DEFINER=`ЂЃѓЉЊ`@`ЂЃѓЉЊ` TRIGGER `cp1251 ЂЃѓЉЊ` BEFORE INSERT ON `cp1251 ЂЃѓЉЊ` FOR EACH ROW SET @a = 'ЂЃѓЉЊ';
-- -> {"affects":[{"action":"CreateTrigger","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A"}]}
CREATE DEFINER=`ЂЃѓЉЊ`@`ЂЃѓЉЊ` EVENT `cp1251 ЂЃѓЉЊ` ON SCHEDULE EVERY 1 DAY DISABLE COMMENT 'ЂЃѓЉЊ' DO SELECT 'ЂЃѓЉЊ';
-- -> {"affects":[{"action":"CreateEvent","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A"}]}
ALTER TABLE `cp1251 ЂЃѓЉЊ` ADD `ЂЃѓЉЊ ЂЃѓЉЊ` INT DEFAULT (LENGTH('ЂЃѓЉЊ'));
-- -> {"affects":[{"action":"AlterTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A"}]}
RENAME TABLE `cp1251 ЂЃѓЉЊ q` TO `cp1251 ЂЃѓЉЊ r`;
-- -> {"affects":[{"action":"RenameTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20q","to":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20r"}]}
CREATE TABLE `cp1251 ЂЃѓЉЊ d` (i INT);
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20d"}]}
DROP TABLE `cp1251 ЂЃѓЉЊ d`;
-- -> {"affects":[{"action":"DropTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20d"}]}
SET sql_generate_invisible_primary_key = ON;
CREATE TABLE `cp1251 ЂЃѓЉЊ g` (i INT COMMENT 'ЂЃѓЉЊ');
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20g"}]}
SET sql_generate_invisible_primary_key = OFF, sql_mode = 'ANSI_QUOTES';
CREATE TABLE "cp1251 ЂЃѓЉЊ a" SELECT 'ЂЃѓЉЊ' AS "ЂЃѓЉЊ";
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20a"}]}
-- -> {"operation":{"Add":{}}}
CREATE VIEW "cp1251 ЂЃѓЉЊ w" ("ЂЃѓЉЊ") AS SELECT "cp1251 ЂЃѓЉЊ" FROM "cp1251 ЂЃѓЉЊ";
-- -> {"affects":[{"action":"CreateView","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20w"}]}
CREATE TABLE `cp1251 ЂЃѓЉЊ p` (i INT DEFAULT (LENGTH('ЂЃѓЉЊ')), CHECK (i > LENGTH('ЂЃѓЉЊ') - 1)) SELECT 1 AS `ЂЃѓЉЊ`;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp1251/cp1251%20%D0%82%D0%83%D1%93%D0%89%D0%8A%20p"}]}
-- -> {"operation":{"Add":{}}}
SET sql_mode = DEFAULT;
SET NAMES utf8mb4;
-- @apply
SELECT * FROM client_cp1251.`cp1251 ЂЃѓЉЊ a`;
-- @both
SELECT table_name, column_name, collation_name FROM information_schema.columns WHERE table_schema = 'client_cp1251' AND collation_name IS NOT NULL ORDER BY 1, 2;
-- @both
SELECT table_name, character_set_client, collation_connection FROM information_schema.views WHERE table_schema = 'client_cp1251';
-- @both
SELECT routine_name, character_set_client, collation_connection, routine_comment, dtd_identifier FROM information_schema.routines WHERE routine_schema = 'client_cp1251' ORDER BY 1, routine_type;
-- @both
SELECT * FROM client_cp1251.`cp1251 ЂЃѓЉЊ p`;
-- @both
