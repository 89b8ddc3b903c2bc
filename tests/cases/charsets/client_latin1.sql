-- Statements of a client in latin1: names, comments and members with letters of its own.
CREATE DATABASE client_latin1;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_latin1"}]}
USE client_latin1;
SET NAMES latin1;
CREATE TABLE `latin1 ƒˆŠŒŽ` (`latin1 ƒˆŠŒŽ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ƒˆŠŒŽ' COMMENT 'ƒˆŠŒŽšœžŸªµºÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ', e ENUM('ƒˆŠŒŽ', 'b')) COMMENT 'ƒˆŠŒŽ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_latin1/latin1%20%C6%92%CB%86%C5%A0%C5%92%C5%BD"}]}
