-- Families of tables of a fixed shape: under each heading a line is an alternative, of which the first makes the tables.
-- A name in braces stands for one of the values under its heading; with a digit, for the same one in all of the line.

-- family kin
CREATE TABLE IF NOT EXISTS kin (id INT PRIMARY KEY, code INT UNIQUE, v INT, boss INT, KEY (boss)); CREATE TABLE IF NOT EXISTS child (id INT PRIMARY KEY, kin INT, w INT, g INT AS (w + 1) STORED, CONSTRAINT fk_kin FOREIGN KEY (kin) REFERENCES kin (id) ON DELETE {act} ON UPDATE {act}); CREATE TABLE IF NOT EXISTS grand (a INT, b INT, child INT, UNIQUE (a), CONSTRAINT fk_child FOREIGN KEY (child) REFERENCES child (id) ON DELETE {act} ON UPDATE {act})
INSERT INTO kin VALUES ({n1}, {number}, {n2}, NULL)
INSERT IGNORE INTO kin VALUES ({n1}, {n1}, {n2}, {n2}), ({n2}, {n2}, {n1}, NULL)
REPLACE INTO kin VALUES ({n1}, {n2}, {n2}, NULL)
INSERT INTO child (id, kin, w) VALUES ({n1}, {n2}, {n1}), ({n3}, NULL, {n2}), ({n4}, {n2}, 1)
INSERT IGNORE INTO child (id, kin, w) VALUES ({n1}, {n2}, {n1}), ({n3}, {n2}, {n2})
REPLACE INTO child (id, kin, w) VALUES ({n1}, {n2}, {n1})
INSERT IGNORE INTO grand VALUES ({n1}, {n2}, {n1}), ({n3}, {n2}, {n3}), (NULL, 1, {n1})
UPDATE kin SET id = {n1} WHERE id = {n2}
UPDATE IGNORE kin SET id = id + 1 WHERE id > {n2}
UPDATE kin SET id = id + 100 ORDER BY id DESC
UPDATE kin SET id = id - 100 WHERE id > 100
UPDATE kin JOIN child ON child.kin = kin.id SET kin.v = {n1}, child.w = {n2}
UPDATE child SET id = id + 1 WHERE id = {n1}
UPDATE child SET kin = {n2} WHERE id = {n1}
DELETE FROM kin WHERE id = {n1}
DELETE IGNORE FROM kin WHERE id > {n1}
DELETE kin, child FROM kin LEFT JOIN child ON child.kin = kin.id WHERE kin.v = {n1}
DELETE FROM child WHERE id = {n1}
DELETE FROM grand LIMIT 1
ALTER TABLE kin ADD CONSTRAINT fk_boss FOREIGN KEY (boss) REFERENCES kin (id) ON DELETE SET NULL
ALTER TABLE kin DROP FOREIGN KEY fk_boss
ALTER TABLE child DROP FOREIGN KEY fk_kin
ALTER TABLE child ADD CONSTRAINT fk_kin FOREIGN KEY (kin) REFERENCES kin (id) ON DELETE {act} ON UPDATE {act}
ALTER TABLE child DROP FOREIGN KEY fk_kin, ADD CONSTRAINT fk_kin2 FOREIGN KEY (kin) REFERENCES kin (code) ON DELETE {act} ON UPDATE {act}
DROP TABLE IF EXISTS grand, child
DROP TABLE IF EXISTS kin
TRUNCATE TABLE kin
RENAME TABLE kin TO kin2, child TO child2; RENAME TABLE kin2 TO kin, child2 TO child
ALTER TABLE kin RENAME COLUMN id TO nr; ALTER TABLE kin RENAME COLUMN nr TO id
BEGIN; DELETE FROM kin WHERE id = {n1}; INSERT INTO kin VALUES ({n1}, {n1}, {n1}, {n1}); COMMIT

-- family numbers
CREATE TABLE IF NOT EXISTS numbers (id {integer} AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, s VARCHAR(9)) AUTO_INCREMENT = {counter}
CREATE TABLE IF NOT EXISTS numbers (a INT UNIQUE, s VARCHAR(9), id INT AUTO_INCREMENT, KEY (id))
CREATE TABLE IF NOT EXISTS numbers (a INT NOT NULL DEFAULT 1, s VARCHAR(9), id {integer} AUTO_INCREMENT, PRIMARY KEY (id, a)) PARTITION BY HASH (id) PARTITIONS 2
INSERT INTO numbers (a, s) VALUES ({number}, {text})
INSERT IGNORE INTO numbers (a) VALUES ({n1}), ({number}), ({number}), (NULL)
INSERT INTO numbers (id, a) VALUES (0, NULL), (NULL, NULL), ({counter}, NULL), (NULL, NULL)
INSERT INTO numbers (id, a) VALUES (-{n1}, NULL)
REPLACE INTO numbers (a, s) VALUES ({n1}, 'r')
INSERT INTO numbers (a) VALUES ({n1}) ON DUPLICATE KEY UPDATE s = 'd', id = LAST_INSERT_ID(id)
INSERT INTO numbers (a) VALUES ({n1}) ON DUPLICATE KEY UPDATE id = id + 50
INSERT IGNORE INTO numbers (s) SELECT s FROM numbers LIMIT 5
BEGIN; INSERT INTO numbers (s) VALUES ('r'), ('r'); ROLLBACK
BEGIN; INSERT INTO numbers (s) VALUES ('c'), ('d'); DELETE FROM numbers WHERE s = 'd'; COMMIT
ALTER TABLE numbers AUTO_INCREMENT = {counter}
DELETE FROM numbers ORDER BY id DESC LIMIT 2
UPDATE numbers SET id = id + {counter} ORDER BY id DESC LIMIT 1
TRUNCATE numbers
DELETE FROM numbers
UPDATE numbers SET id = 0 LIMIT 1
ALTER TABLE numbers FORCE
DROP TABLE IF EXISTS numbers
OPTIMIZE TABLE numbers
CREATE TABLE IF NOT EXISTS numbers2 LIKE numbers
DROP TABLE IF EXISTS numbers2
INSERT IGNORE INTO numbers2 SELECT * FROM numbers
RENAME TABLE numbers TO numbers2
ALTER TABLE numbers MODIFY id BIGINT AUTO_INCREMENT

-- family slices
CREATE TABLE IF NOT EXISTS slices {columns} PARTITION BY {by}; CREATE TABLE IF NOT EXISTS slice {columns}
INSERT IGNORE INTO slices (id, k, s) VALUES ({n1}, {k}, {text}), ({n1}, {k}, 'x'), ({n1}, 15, 'y')
INSERT IGNORE INTO slice (id, k, s) VALUES ({n1}, {k}, {text})
DELETE FROM slices WHERE k = {k}
INSERT IGNORE INTO slices PARTITION (p0) (id, k, s) VALUES ({n1}, {k}, 'p')
UPDATE slices SET k = {k} WHERE id > {n1}
UPDATE IGNORE slices SET k = k + 10, s = 'moved' WHERE k = {k}
DELETE FROM slices PARTITION (p1) WHERE id > {n1}
ALTER TABLE slices EXCHANGE PARTITION p0 WITH TABLE slice
ALTER TABLE slices EXCHANGE PARTITION p1 WITH TABLE slice WITHOUT VALIDATION
ALTER TABLE slices TRUNCATE PARTITION p0
ALTER TABLE slices DROP PARTITION p1
ALTER TABLE slices COALESCE PARTITION 1
ALTER TABLE slices ADD PARTITION PARTITIONS 2
ALTER TABLE slices ADD PARTITION (PARTITION p2 VALUES LESS THAN (200))
ALTER TABLE slices ADD PARTITION (PARTITION p3 VALUES IN (95, 300))
ALTER TABLE slices REBUILD PARTITION p0
ALTER TABLE slices REORGANIZE PARTITION p0 INTO (PARTITION n0 VALUES LESS THAN (6), PARTITION p0 VALUES LESS THAN (10))
ALTER TABLE slices REORGANIZE PARTITION
ALTER TABLE slices REMOVE PARTITIONING
ALTER TABLE slices PARTITION BY {by}
ALTER TABLE slices ADD COLUMN extra INT DEFAULT 7
ALTER TABLE slices DROP COLUMN extra
DROP TABLE IF EXISTS slices, slice
ALTER TABLE slices OPTIMIZE PARTITION p0
TRUNCATE slices
ALTER TABLE slices DROP PRIMARY KEY
ALTER TABLE slices ADD x{n1} INT, PARTITION BY {by}
ALTER TABLE slices TRUNCATE PARTITION ALL

-- family computed
CREATE TABLE IF NOT EXISTS {made1} (id INT NOT NULL, a INT, b BIGINT, s VARCHAR(20), t CHAR(20) COLLATE utf8mb4_bin, d DATETIME(3), f DOUBLE, e ENUM('a','b','x'), j JSON, x VARBINARY(20), g9 {generated} {stored}, {key} (id)) CHARACTER SET {charset}
INSERT IGNORE INTO {made1} {names} VALUES {row}
INSERT INTO {made1} {names} VALUES {row}
INSERT INTO {made1} {names} VALUES {row}
REPLACE INTO {made1} {names} VALUES {row}
INSERT INTO {made1} {names} VALUES {row} ON DUPLICATE KEY UPDATE {assignment}
UPDATE {made1} SET {assignment} WHERE id = {n1}
UPDATE IGNORE {made1} SET {assignment}, a = a + 1
DELETE FROM {made1} WHERE id = {n1}
UPDATE {made1} SET id = id + 1 ORDER BY id DESC LIMIT 2
ALTER TABLE {made1} ADD COLUMN g{place1} {generated} {stored}
ALTER TABLE {made1} ADD COLUMN g{place1} {generated} VIRTUAL, ADD KEY (g{place1})
ALTER TABLE {made1} DROP COLUMN g{place1}
ALTER TABLE {made1} ADD KEY e{place1} (({keyed}))
ALTER TABLE {made1} DROP KEY e{place1}
ALTER TABLE {made1} ADD UNIQUE KEY e{place1} (({keyed}), id)
ALTER TABLE {made1} ADD CONSTRAINT {made1}_c{place1} CHECK ({check}) {enforced}
ALTER TABLE {made1} DROP CHECK {made1}_c{place1}
ALTER TABLE {made1} ALTER CHECK {made1}_c{place1} NOT ENFORCED
ALTER TABLE {made1} ADD n{place1} {plain} DEFAULT {default}
ALTER TABLE {made1} DROP COLUMN n{place1}
ALTER TABLE {made1} ALTER COLUMN {column} SET DEFAULT {default}
ALTER TABLE {made1} CONVERT TO CHARACTER SET {charset}
ALTER TABLE {made1} MODIFY g{place1} {generated} {stored}
INSERT INTO {made1} (id, a, s) VALUES ({n1}, {n1}, DEFAULT)
TRUNCATE {made1}
DROP TABLE IF EXISTS {made1}
CREATE TABLE {made1}c LIKE {made1}; INSERT IGNORE INTO {made1}c {names} SELECT id, a, b, s, t, d, f, e, j, x FROM {made1}; DROP TABLE {made1}c

-- family exact
CREATE TABLE IF NOT EXISTS exact0 (id INT PRIMARY KEY, d DOUBLE, f FLOAT UNSIGNED); INSERT IGNORE INTO exact0 VALUES (1, 1.23456789, 3.14159265), (2, -0e0, 1e20), (3, {number}.123456, {n}.5e-10), (4, NULL, NULL); SET SESSION sql_mode = ''; CREATE TABLE IF NOT EXISTS exact1 (id INT PRIMARY KEY, d DOUBLE(15,4), f FLOAT(9,3) UNSIGNED UNIQUE, e ENUM('s', 'ß', '😀', '😁') CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, g DOUBLE AS (d * 3) {stored}); CREATE TABLE IF NOT EXISTS exact2 (d DOUBLE(15,4), f FLOAT(9,3), s SET('y', 'ü', 'Y') CHARACTER SET latin1 COLLATE latin1_swedish_ci); CREATE TABLE IF NOT EXISTS exact3 (f FLOAT(9,3), d DOUBLE(15,4) UNSIGNED, e ENUM('u', 'v') CHARACTER SET utf8mb4 COLLATE utf8mb4_roman_ci, PRIMARY KEY (f, e))
INSERT IGNORE INTO exact1 (id, d, f, e) SELECT id + {n}, d, f, {n} % 5 FROM exact0
REPLACE INTO exact1 (id, d, f, e) SELECT id, d, f + {n}, {n} % 5 FROM exact0
INSERT INTO exact1 (id, d, f, e) SELECT id, d, f, 2 FROM exact0 WHERE id < 3 ON DUPLICATE KEY UPDATE exact1.d = exact0.d, e = 4
INSERT IGNORE INTO exact2 SELECT d, f, {n} FROM exact0
INSERT IGNORE INTO exact2 VALUES ({number}.5, 999999.999, {n}), ({n}, {n}, {n}), ({n}, {n}, {n})
INSERT IGNORE INTO exact3 SELECT f, f, 1 + {n} % 2 FROM exact0
INSERT IGNORE INTO exact3 VALUES (999999.999, {n}, 1), ({n}.5, 0, 2), ({n}.5, 0, 1)
UPDATE IGNORE exact1, exact0 SET exact1.d = exact0.d, exact1.f = exact0.f WHERE exact0.id = {n} AND exact1.id < {n}
UPDATE IGNORE exact1 SET id = id + 10, e = {n} % 5 WHERE id < {n}
UPDATE IGNORE exact1 SET e = {n} % 5
UPDATE exact2, exact0 SET exact2.d = exact0.d, exact2.f = exact0.f WHERE exact0.id = {n} AND RAND({n}) < 0.3
UPDATE exact2 SET s = {n}, d = d + 1 LIMIT 3
UPDATE exact2 SET d = f WHERE s = {n}
UPDATE IGNORE exact3, exact0 SET exact3.f = exact0.f WHERE exact0.id = {n} AND RAND({n}) < 0.5
UPDATE exact3 SET d = d + 0.12345
DELETE FROM exact1 WHERE id > {n}
DELETE FROM exact2 LIMIT {n}
DELETE FROM exact3 WHERE RAND({n}) < 0.5
ALTER TABLE exact1 MODIFY f FLOAT(9,{n}) UNSIGNED
ALTER TABLE exact0 MODIFY d DOUBLE(20,{n})
ALTER TABLE exact0 MODIFY d DOUBLE
ALTER TABLE exact2 ADD UNIQUE (f)
ALTER TABLE exact2 DROP KEY f
BEGIN; UPDATE exact3 SET f = f + 100; UPDATE exact3 SET f = f - 100; DELETE FROM exact2 LIMIT 2; COMMIT

-- family engines
CREATE TABLE IF NOT EXISTS engine0 (id INT PRIMARY KEY, s VARCHAR(20), n INT) ENGINE = {engine}; CREATE TABLE IF NOT EXISTS engine1 (id INT, s TEXT, n INT) ENGINE = MyISAM
INSERT INTO engine0 VALUES ({n}, {text}, {number}), ({n}, {text}, {number})
INSERT IGNORE INTO engine0 VALUES ({n}, {text}, {number}), ({n}, {text}, {number})
REPLACE INTO engine0 VALUES ({n}, {text}, {number})
INSERT INTO engine1 VALUES ({n}, {text}, {number}), ({n}, {text}, {number})
INSERT INTO engine1 SELECT * FROM engine0
UPDATE engine0 SET n = n + 1 WHERE id > {n}
UPDATE engine0 SET id = id + 1
UPDATE engine1 SET s = {text} LIMIT 2
UPDATE engine0 JOIN engine1 USING (id) SET engine0.n = {number}, engine1.s = {text}
DELETE FROM engine0 WHERE id = {n}
DELETE FROM engine1 LIMIT 1
DELETE FROM engine1
TRUNCATE engine0
ALTER TABLE engine0 ENGINE = {engine}
ALTER TABLE engine1 ENGINE = {engine}
ALTER TABLE engine0 ADD x{place1} INT DEFAULT 3
ALTER TABLE engine0 DROP COLUMN x{place1}
ALTER TABLE engine1 ADD KEY k{place1} (n)
CREATE TABLE engine2 LIKE engine0; INSERT INTO engine2 SELECT * FROM engine0; DROP TABLE engine2
DROP TABLE IF EXISTS engine0, engine1

-- engine
MyISAM
MEMORY
InnoDB

-- text
NULL
''
'a'
'A '
'á'
'ß'
'ж'
'中'
'12'
'-1.5'
'2024-02-30'
'{}'
'it''s'
'x y'
'abcdefghijk'

-- act
CASCADE
CASCADE
SET NULL
RESTRICT
NO ACTION

-- n
0
1
2
3
4
5
6
7
8
9

-- number
{n}
{n}
{n}
{n}
-1
300

-- counter
0
5
100
40000

-- k
5
15
25
95

-- place
0
1
2
3
4

-- integer
INT
SMALLINT UNSIGNED
BIGINT
TINYINT

-- made
made0
made1

-- stored
STORED
VIRTUAL
VIRTUAL

-- key
PRIMARY KEY
PRIMARY KEY
UNIQUE KEY
KEY

-- charset
utf8mb4
utf8mb4
latin1
cp1251
gbk
ucs2

-- column
a
b
s
t
d
f
e
j
x

-- enforced
ENFORCED
NOT ENFORCED

-- plain
INT
VARCHAR(20)
JSON
DATETIME(3)
DECIMAL(9,2)
CHAR(5)

-- columns
(id INT, k INT NOT NULL, s VARCHAR(20), g INT AS (k + 1) VIRTUAL, PRIMARY KEY (id, k), KEY (s))

-- names
(id, a, b, s, t, d, f, e, j, x)

-- row
({number}, {number}, {number}, {text}, {text}, {date}, {number}.125, {n}, {json}, {text})

-- assignment
a = {number}
b = {number}
s = {text}
t = {text}
d = {date}
f = {number}
e = {n}
j = {json}
x = {text}

-- generated
INT AS (LENGTH(s))
VARCHAR(40) AS (UPPER(s))
VARCHAR(90) AS (CONCAT(s, t))
BIGINT AS (a + b)
INT AS (a * 2)
VARCHAR(40) AS (HEX(b))
CHAR(32) AS (MD5(s))
DATE AS (d)
INT AS (YEAR(d))
DATETIME AS (DATE_ADD(d, INTERVAL a DAY))
VARCHAR(40) AS (j->>'$.a')
INT AS (JSON_LENGTH(j))
CHAR(3) AS (CAST(s AS CHAR(3)))
VARBINARY(40) AS (t)
DOUBLE AS (f * f)
DECIMAL(12,2) AS (ROUND(f, 2))
VARCHAR(9) AS (e)
INT AS (e + 0)
INT AS (NOT a)
TINYINT AS (a IS NULL)
INT AS (s LIKE t)
CHAR(20) AS (TRIM(s))
VARCHAR(20) AS (REVERSE(t))
VARCHAR(20) AS (CONVERT(s USING utf8mb4))
DECIMAL(20,3) AS (COALESCE(a, b))
INT AS (a || b)
JSON AS (JSON_ARRAY(a, s, d))
SMALLINT AS (ABS(a))
BINARY(4) AS (x)
INT AS (BIT_COUNT(a))
DATE AS (d + INTERVAL 1 MONTH)
INT AS (TO_DAYS(d))
TINYINT AS (b)
VARCHAR(3) AS (s)
TEXT AS (t)
VARCHAR(20) AS (SOUNDEX(s))
INT UNSIGNED AS (CRC32(s))

-- keyed
LOWER(s)
a + b
CAST(d AS CHAR(20))
LENGTH(t)
MD5(t)
YEAR(d)
e + 0
CAST(j->'$.n' AS UNSIGNED ARRAY)
ABS(a)
s || t

-- check
a < 100
s <> 'x'
a IS NULL OR b > a
LENGTH(t) < 9
d > '2000-01-01'
NOT a = 5
j IS NOT NULL
s LIKE 'a%' OR a > 0

-- default
(a + 1)
(UPPER(s))
(JSON_ARRAY(a))
'x'
(CURRENT_TIMESTAMP)
5
(CONCAT(s, t))
(PI())
(LENGTH(s))
NULL

-- date
NULL
'0000-00-00'
'2024-02-31'
'2001-00-00'
'2024-05-06 07:08:09.9996'
'1999-12-31 23:59:59.9999'
NOW(3)

-- json
NULL
'{"a": 1, "n": [1, 2]}'
'{"a": "x", "n": [7]}'
'[]'
JSON_OBJECT('a', 1.50, 'n', JSON_ARRAY(3))
'1e2'

-- by
RANGE (k) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION pm VALUES LESS THAN MAXVALUE)
RANGE COLUMNS (k) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION pm VALUES LESS THAN (MAXVALUE))
LIST (k) (PARTITION p0 VALUES IN (5, 6), PARTITION p1 VALUES IN (15, 25))
HASH (k) PARTITIONS 3
LINEAR KEY ALGORITHM = 2 (id) PARTITIONS 4
KEY () PARTITIONS 2
