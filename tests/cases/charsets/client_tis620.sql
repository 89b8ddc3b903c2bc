-- Statements of a client in tis620: names, comments and members with letters of its own.
CREATE DATABASE client_tis620;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_tis620"}]}
USE client_tis620;
SET NAMES tis620;
CREATE TABLE `tis620 กขฃคฅ` (`tis620 กขฃคฅ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'กขฃคฅ' COMMENT 'กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะาำเแโใไๅๆ', e ENUM('กขฃคฅ', 'b')) COMMENT 'กขฃคฅ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_tis620/tis620%20%E0%B8%81%E0%B8%82%E0%B8%83%E0%B8%84%E0%B8%85"}]}
