-- FLOAT(M,D) and DOUBLE(M,D) have all digits of what they take from another column, and of what a key has.
CREATE DATABASE case_digits;
-- -> {"sequence":0}
USE case_digits;
CREATE TABLE plain (id INT PRIMARY KEY, d DOUBLE, f FLOAT, p DOUBLE UNSIGNED);
-- -> {"sequence":1}
CREATE TABLE fixed (id INT PRIMARY KEY, d DOUBLE(15,4), f FLOAT(9,3), p DOUBLE(15,4) UNSIGNED ZEROFILL, c0_ VARCHAR(20), e ENUM('a','b'), j JSON, g DOUBLE AS (d * 3) STORED);
-- -> {"sequence":2}
CREATE TABLE loose (d DOUBLE(15,4), f FLOAT(9,3) UNSIGNED, s VARCHAR(20));
-- -> {"sequence":3}
CREATE TABLE keys_of_digits (f FLOAT(9,3), d DOUBLE(15,4) UNSIGNED, x FLOAT(9,3), PRIMARY KEY (f, d));
-- -> {"sequence":4}
INSERT INTO plain VALUES (1, 1.23456789, 3.14159265, 2.718281828), (2, -0e0, 1e20, 0), (3, 1e200, -1.4e-45, 5e-324), (4, NULL, NULL, NULL);
-- -> {"sequence":5}
INSERT INTO fixed (id, d, f, p, c0_, e, j) SELECT id, d, f, p, 'it''s', 2, JSON_ARRAY(d) FROM plain;
-- -> {"sequence":6}
INSERT INTO loose (d, s) SELECT d, 'x' FROM plain;
-- -> {"sequence":7}
INSERT INTO loose (d, s) SELECT d, 'x' FROM plain;
-- -> {"sequence":8}
INSERT INTO keys_of_digits VALUES (999999.999, 0, 1), (3.14, 1, 1), (-999999.999, 2, 1), (0, 0, 1);
-- -> {"sequence":9}
UPDATE keys_of_digits, plain SET keys_of_digits.f = plain.f, keys_of_digits.d = plain.p WHERE keys_of_digits.f = 0 AND plain.id = 1;
-- -> {"sequence":10}
UPDATE keys_of_digits, plain SET keys_of_digits.f = plain.f WHERE keys_of_digits.d = 1 AND plain.id = 2;
-- -> {"sequence":11}
ALTER TABLE fixed COMMENT 'a batch ends here';
-- -> {"sequence":12}
UPDATE fixed, plain SET fixed.d = plain.d, fixed.f = plain.f WHERE plain.id = 3 AND fixed.id < 3;
-- -> {"sequence":13}
UPDATE keys_of_digits, plain SET keys_of_digits.x = plain.f WHERE plain.id = 1;
-- -> {"sequence":14}
UPDATE loose, plain SET loose.d = plain.d, loose.s = 'y' WHERE plain.id = 1 AND loose.d IS NULL;
-- -> {"sequence":15}
ALTER TABLE fixed COMMENT 'and here';
-- -> {"sequence":16}
DELETE FROM keys_of_digits WHERE x + 0e0 > 3 AND d < 2;
-- -> {"sequence":17}
DELETE FROM loose LIMIT 5;
-- -> {"sequence":18}
UPDATE fixed, plain SET fixed.id = fixed.id + 10, fixed.d = plain.d WHERE plain.id = 1;
-- -> {"sequence":19}
