-- Statements of a client in koi8r: names, comments and members with letters of its own.
CREATE DATABASE client_koi8r;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_koi8r"}]}
USE client_koi8r;
SET NAMES koi8r;
CREATE TABLE `koi8r ёЁюаб` (`koi8r ёЁюаб` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ёЁюаб' COMMENT 'ёЁюабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ', e ENUM('ёЁюаб', 'b')) COMMENT 'ёЁюаб' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_koi8r/koi8r%20%D1%91%D0%81%D1%8E%D0%B0%D0%B1"}]}
