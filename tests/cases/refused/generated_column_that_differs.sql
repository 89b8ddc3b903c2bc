-- What the leader's div_precision_increment makes of a generated column is in the rows, and in nothing else. The way out
-- is the same setting; for the session's time zone and language it is a plain column. A literal of a stored expression
-- that the leader read anew is refused, too.
-- @alone
CREATE DATABASE division;
USE division;
CREATE TABLE t (id INT PRIMARY KEY, g DOUBLE AS (id / 3) STORED);
-- @apply
SET GLOBAL div_precision_increment = 10;
FLUSH TABLES;
-- @leader NEW
INSERT INTO division.t (id) VALUES (1), (2);
SELECT g FROM division.t;
-- = [0.3333333333]
-- = [0.6666666667]
-- @leader
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
-- @follower
SELECT * FROM division.t;
-- = nothing
SET GLOBAL div_precision_increment = 10;
FLUSH TABLES;
-- @apply
-- @equal
-- @follower
SELECT * FROM division.t;
-- = [1, 0.3333333333]
-- = [2, 0.6666666667]
-- @leader
SET time_zone = '+05:00', lc_time_names = 'de_DE';
CREATE TABLE moments (id INT PRIMARY KEY, at TIMESTAMP, h INT AS (HOUR(at)) STORED);
CREATE TABLE days (id INT PRIMARY KEY, at DATE, d VARCHAR(9) AS (DAYNAME(at)) STORED);
INSERT INTO moments (id, at) VALUES (1, '2024-01-01 03:00:00');
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
-- @follower
ALTER TABLE division.moments MODIFY h INT;
-- @leader
INSERT INTO days (id, at) VALUES (1, '2024-01-01');
SET time_zone = DEFAULT, lc_time_names = DEFAULT;
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
-- @follower
ALTER TABLE division.days MODIFY d VARCHAR(9);
-- @apply
-- @follower
SELECT UNIX_TIMESTAMP(moments.at), h, d FROM division.moments JOIN division.days USING (id);
-- = [1704060000, 3, "Montag"]
-- @leader
CREATE TABLE u (id INT PRIMARY KEY, s VARCHAR(9) AS (CONCAT(id, '\\')) STORED);
-- @record {"uri":"flv://mysql-srv1/division/u","columns":["id","s"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"1\\\\"}]}]}}}
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here
