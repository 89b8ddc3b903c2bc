-- Rows that come and go at once leave nothing but the number that comes next.
CREATE DATABASE numbers;
-- -> {"sequence":0}
USE numbers;
CREATE TABLE jobs (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20) UNIQUE, size INT AS (CHAR_LENGTH(what)) STORED);
-- -> {"sequence":1}
CREATE TABLE places (place CHAR(3) PRIMARY KEY, id BIGINT UNSIGNED AUTO_INCREMENT, KEY (id));
-- -> {"sequence":2}
INSERT INTO jobs (what) VALUES ('a'), ('b'), ('c'), ('d'), ('e');
-- -> {"sequence":3}
DELETE FROM jobs;
-- -> {"sequence":4}
INSERT INTO jobs (id, what) VALUES (50, 'a');
-- -> {"sequence":5}
UPDATE jobs SET id = 70;
-- -> {"sequence":6}
DELETE FROM jobs;
-- -> {"sequence":7}
INSERT INTO jobs (id, what) VALUES (3, 'a');
-- -> {"sequence":8}
INSERT INTO places VALUES ('a', 5), ('b', 18446744073709551000);
-- -> {"sequence":9}
UPDATE places SET id = 6 WHERE place = 'b';
-- -> {"sequence":10}
