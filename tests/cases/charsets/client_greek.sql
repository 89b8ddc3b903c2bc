-- Statements of a client in greek: names, comments and members with letters of its own.
CREATE DATABASE client_greek;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_greek"}]}
USE client_greek;
SET NAMES greek;
CREATE TABLE `greek ʽʼΆΈΉ` (`greek ʽʼΆΈΉ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ʽʼΆΈΉ' COMMENT 'ʽʼΆΈΉΊΌΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ', e ENUM('ʽʼΆΈΉ', 'b')) COMMENT 'ʽʼΆΈΉ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_greek/greek%20%CA%BD%CA%BC%CE%86%CE%88%CE%89"}]}
