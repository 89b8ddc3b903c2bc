-- Names in utf8mb4 with bytes that are no letters, and letters that the server stores as question marks.
CREATE DATABASE client_utf8mb4;
USE client_utf8mb4;
CREATE TABLE `u {hex 80 e9 80}` (i INT, `c{hex 80}` INT);
INSERT INTO `u {hex 80 e9 80}` VALUES (1, 2);
CREATE TABLE `🐹 q` (i INT);
INSERT INTO `🐹 q` VALUES (1);
ALTER TABLE `? q` RENAME `{hex 81} r`;
DROP DATABASE IF EXISTS `{hex 8e c6 8e ce 8e dd 8e ba 8e de}`;
-- @apply
SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'client_utf8mb4' ORDER BY 1, 2;
-- @both
