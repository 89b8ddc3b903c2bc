-- The follower computes generated columns itself, also where their expressions have quotes and backslashes: the server
-- keeps those as text, and reads that anew for the session that opens the table.
CREATE DATABASE generated_columns;
USE generated_columns;
CREATE TABLE t (id INT PRIMARY KEY, v INT AS (id * 2), s INT AS (id * 3) STORED UNIQUE);
CREATE TABLE quotes (i INT PRIMARY KEY, c TEXT, g TEXT AS (REPLACE(c, '\\', '''')) STORED, d TEXT DEFAULT (CONCAT('\\', '''')), CHECK (c <> '\\' AND c <> ''''));
-- @apply
-- @follower
FLUSH TABLES generated_columns.quotes;
-- @leader
INSERT INTO t (id) VALUES (1);
UPDATE t SET id = 2;
INSERT INTO quotes (i, c) VALUES (1, 'a\\b');
INSERT INTO quotes (i, c, d) VALUES (2, '\\\\', '''');
-- @apply
-- @equal
-- @follower
SELECT * FROM generated_columns.t;
-- = [2, 4, 6]
SELECT * FROM generated_columns.quotes;
-- = [1, "a\\b", "a'b", "\\'"]
-- = [2, "\\\\", "''", "'"]
