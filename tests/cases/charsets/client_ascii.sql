-- Statements of a client in ascii: names, comments and members with letters of its own.
CREATE DATABASE client_ascii;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_ascii"}]}
USE client_ascii;
SET NAMES ascii;
CREATE TABLE `ascii e` (`ascii e` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'e' COMMENT 'e', e ENUM('e', 'b')) COMMENT 'e' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_ascii/ascii%20e"}]}
