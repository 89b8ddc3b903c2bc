-- A statement's text is as its client meant it, also where its bytes would be other letters in UTF-8.
CREATE DATABASE other_charsets;
-- -> {}
USE other_charsets;
SET NAMES latin1;
CREATE TABLE latin1 (i INT COMMENT 'Ã© €');
-- -> {"operation":{"Query":"CREATE TABLE latin1 (i INT COMMENT 'Ã© €')"}}
SET NAMES utf8mb4;
CREATE TABLE utf8mb4 (i INT COMMENT 'ж \\xf2');
-- -> {"operation":{"Query":"CREATE TABLE utf8mb4 (i INT COMMENT 'ж \\\\xf2')"}}
SET NAMES cp1251;
CREATE TABLE cp1251 (i INT COMMENT 'ж');
-- -> {"operation":{"Query":"CREATE TABLE cp1251 (i INT COMMENT 'ж')","Bytes":"Q1JFQVRFIFRBQkxFIGNwMTI1MSAoaSBJTlQgQ09NTUVOVCAn5icp"}}
SET NAMES gbk;
CREATE TABLE a (i INT PRIMARY KEY, t VARCHAR(20));
-- -> {}
INSERT INTO a VALUES (1, 'x');
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"x"}]}]}}}
BEGIN;
DELETE FROM a;
SAVEPOINT s;
COMMIT;
-- -> {"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":1},{"String":"x"}]}]}}}
SET NAMES cp1251;
INSERT INTO a VALUES (2, 'x');
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2},{"String":"x"}]}]}}}
BEGIN;
DELETE FROM a;
SAVEPOINT s;
COMMIT;
-- -> {"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":2},{"String":"x"}]}]}}}
SET NAMES sjis;
INSERT INTO a VALUES (3, 'x');
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":3},{"String":"x"}]}]}}}
BEGIN;
DELETE FROM a;
SAVEPOINT s;
COMMIT;
-- -> {"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":3},{"String":"x"}]}]}}}
SET NAMES latin1;
INSERT INTO a VALUES (4, 'x');
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":4},{"String":"x"}]}]}}}
BEGIN;
DELETE FROM a;
SAVEPOINT s;
COMMIT;
-- -> {"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":4},{"String":"x"}]}]}}}
