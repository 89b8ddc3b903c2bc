-- A reader of the topic who knows no SQL: what a statement affects, its database, and the columns of a row's key.
CREATE DATABASE other_readers;
-- -> {}
USE other_readers;
CREATE TABLE a (i INT PRIMARY KEY, j INT NOT NULL, UNIQUE (j));
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/other_readers/a"}],"context":{"database":"other_readers"}}
INSERT INTO a VALUES (1, 2);
-- -> {"uri":"flv://mysql-srv1/other_readers/a","key":["i"]}
