-- Bytes that are no text stop nothing in comments and literals, and the follower gets them as they are.
CREATE DATABASE no_text;
-- -> {}
USE no_text;
CREATE TABLE a (i INT) /* gr{hex fc df}e */;
-- -> {"operation":{"Query":"CREATE TABLE a (i INT) /* gr??e */"}}
ANALYZE TABLE a /* {hex fc} */;
-- -> {"affects":[{"action":"MaintainTable","uri":"flv://mysql-srv1/no_text/a"}]}
ALTER TABLE a ADD j INT -- {hex fc};
-- -> {"affects":[{"action":"AlterTable","uri":"flv://mysql-srv1/no_text/a"}]}
INSERT INTO a VALUES (1, 2) /* {hex fc} */;
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"SignedInteger":2}]}]}}}
CREATE TABLE b (i INT COMMENT 'gr{hex fc df}e');
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/no_text/b"}]}
CREATE PROCEDURE p() SELECT 'gr{hex fc df}e';
-- -> {"affects":[{"action":"CreateProcedure","uri":"flv://mysql-srv1/no_text/p"}]}
CREATE TABLE c (i INT) /*! COMMENT = 'gr{hex fc df}e' */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/no_text/c"}]}
SET NAMES cp1251;
ALTER TABLE a ADD k INT /* ж */;
-- -> {"affects":[{"action":"AlterTable","uri":"flv://mysql-srv1/no_text/a"}]}
