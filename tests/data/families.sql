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

-- family rounded
CREATE TABLE IF NOT EXISTS raw (id INT PRIMARY KEY, d DOUBLE, f FLOAT); INSERT IGNORE INTO raw VALUES (1, 1.0001, 1.0002), (2, 1.0004, 2.0049), (3, {number}.1251, {n}.5049), (4, -0e0, 0), (5, NULL, 3.14159), (6, 9999.996, 99999.99), (7, {n}.5e-10, 2.005); SET SESSION sql_mode = ''; CREATE TABLE IF NOT EXISTS round0 (id INT NOT NULL, a INT, f {round}, d {round}, b BIT(3), n DECIMAL(6,2), {unique}); CREATE TABLE IF NOT EXISTS round1 (id INT NOT NULL, a INT, f {round}, d {round}, b BIT(3), n DECIMAL(6,2), g DOUBLE AS (f + 1) {stored}, {unique}, UNIQUE (g))
INSERT IGNORE INTO {ro1} (id, a, f, d, b, n) SELECT id + {n}, {n}, f, d, {n}, d FROM raw
INSERT IGNORE INTO {ro1} (id, a, f, d, b, n) SELECT id, {n}, f, f, {n} % 8, f FROM raw WHERE id < {n}
INSERT IGNORE INTO {ro1} (id, a, f, d, b, n) SELECT id + {n}, NULL, d + 0.000{n}, f + {n}, id, {n} FROM raw
REPLACE INTO {ro1} (id, a, f, d, b, n) SELECT id + {n}, {n}, d, f, id % 8, d FROM raw
REPLACE INTO {ro1} (id, a, f, d, b, n) SELECT id, {n}, f + {n}, d, id % 8, d FROM raw
REPLACE INTO {ro1} (id, a, f, d, b, n) VALUES ({n}, {n}, {n}.005, {number}, {n} % 8, {n}.5), ({n}, {n}, {n}, {n}, 1, 1)
INSERT INTO {ro1} (id, a, f, d, b, n) SELECT id, {n}, f, d, id % 8, d FROM raw ON DUPLICATE KEY UPDATE {rassign}
INSERT IGNORE INTO {ro1} (id, a, f, d, b, n) SELECT id, {n}, d, f, id % 8, d FROM raw ON DUPLICATE KEY UPDATE {rassign}
INSERT IGNORE INTO {ro1} (id, a, f, d, b, n) VALUES ({n}, {n}, {n}, {n}, {n} % 8, {n}), ({n}, {n}, {n}.5, {n}.25, {n} % 8, {n}) ON DUPLICATE KEY UPDATE {rassign}
UPDATE IGNORE {ro1} JOIN raw USING (id) SET {ro1}.f = raw.f, {ro1}.d = raw.d
UPDATE {ro1} JOIN raw USING (id) SET {ro1}.f = raw.d + {n} WHERE raw.id = {n}
UPDATE IGNORE {ro1}, raw SET {ro1}.f = raw.f + {n}, {ro1}.id = {ro1}.id + 1 WHERE raw.id = {n}
UPDATE IGNORE {ro1} SET {rassign}
UPDATE {ro1} SET {rassign} ORDER BY id DESC LIMIT {n}
UPDATE {ro1} SET {rassign} WHERE id = {n}
BEGIN; UPDATE {ro1} SET f = f + 500; UPDATE {ro1} SET f = f - 500; COMMIT
BEGIN; UPDATE {ro1} SET id = id + 500; UPDATE IGNORE {ro1} SET id = 520 - id; COMMIT
BEGIN; DELETE FROM {ro1} LIMIT 3; INSERT IGNORE INTO {ro1} (id, a, f, d, b, n) SELECT id, {n}, f, d, id % 8, d FROM raw; UPDATE IGNORE {ro1} SET {rassign}; COMMIT
DELETE FROM {ro1} WHERE f > {n}
DELETE FROM {ro1} WHERE id = {n}
DELETE FROM {ro1} LIMIT {n}
DELETE {ro1} FROM {ro1} JOIN raw ON {ro1}.f = raw.f
UPDATE raw SET d = f, f = {number}.33333 WHERE id = {n}
ALTER TABLE {ro1} MODIFY f {round}
ALTER TABLE {ro1} MODIFY d {round}
ALTER TABLE {ro1} ADD UNIQUE u{place1} ({rindex})
ALTER TABLE {ro1} ADD UNIQUE u{place1} ({rindex}, {rindex})
ALTER TABLE {ro1} DROP KEY u{place1}
ALTER TABLE {ro1} DROP PRIMARY KEY
ALTER TABLE {ro1} ADD PRIMARY KEY (id, f)
ALTER IGNORE TABLE {ro1} FORCE
CREATE TABLE roundc LIKE {ro1}; INSERT IGNORE INTO roundc (id, a, f, d, b, n) SELECT id, a, f, d, b, n FROM {ro1}; UPDATE IGNORE roundc SET f = d; DROP TABLE roundc
TRUNCATE {ro1}
DROP TABLE IF EXISTS {ro1}

-- family counted
CREATE TABLE IF NOT EXISTS count0 (id {integer} NOT NULL AUTO_INCREMENT, a INT NOT NULL DEFAULT 3, b INT, s VARCHAR(9), {ckey}) AUTO_INCREMENT = {counter}; CREATE TABLE IF NOT EXISTS count1 (b INT, id {integer} NOT NULL AUTO_INCREMENT, s VARCHAR(9), a INT NOT NULL DEFAULT 4, {ckey})
INSERT INTO {co1} (a, b, s) VALUES ({number}, {n}, {text})
INSERT INTO {co1} (a, b, s) VALUES ({number}, {n}, {text}), ({number}, NULL, 'x'), ({number}, {number}, 'y')
INSERT IGNORE INTO {co1} (a, b, s) VALUES ({number}, {n}, {text}), ({number}, NULL, 'x'), ({number}, {number}, 'y')
INSERT IGNORE INTO {co1} (id, a, b) VALUES ({cvalue}, {n}, {n}), ({cvalue}, {n}, {n}), ({cvalue}, {n}, NULL)
INSERT INTO {co1} (id, a, b) VALUES ({cvalue}, {n}, {n})
REPLACE INTO {co1} (a, b, s) VALUES ({n}, {n}, 'r'), ({n}, {n}, 's')
REPLACE INTO {co1} (id, a, b, s) VALUES ({cvalue}, {n}, {n}, 'r')
INSERT INTO {co1} (a, b, s) VALUES ({n}, {n}, 'o'), ({n}, {n}, 'o') ON DUPLICATE KEY UPDATE {cassign}
INSERT INTO {co1} (id, a, b) VALUES ({cvalue}, {n}, {n}) ON DUPLICATE KEY UPDATE {cassign}
INSERT IGNORE INTO {co1} (a, b) SELECT b, a FROM {co2} LIMIT {n}
INSERT IGNORE INTO {co1} (id, a, b) SELECT id, b, a FROM {co2}
UPDATE IGNORE {co1} SET {cassign}
UPDATE {co1} SET {cassign} ORDER BY id DESC LIMIT 1
UPDATE {co1} SET {cassign} ORDER BY id LIMIT 2
UPDATE IGNORE {co1} JOIN {co2} ON {co1}.b = {co2}.b SET {co1}.id = {co2}.id + {n}
DELETE FROM {co1} ORDER BY id DESC LIMIT {n}
DELETE FROM {co1} WHERE a = {n}
DELETE FROM {co1}
BEGIN; INSERT INTO {co1} (b) VALUES ({n}), ({n}); DELETE FROM {co1} ORDER BY id DESC LIMIT 1; COMMIT
BEGIN; INSERT IGNORE INTO {co1} (a, b) VALUES ({n}, {n}), ({n}, 1); UPDATE IGNORE {co1} SET {cassign}; DELETE FROM {co1} ORDER BY id DESC LIMIT 2; COMMIT
BEGIN; INSERT IGNORE INTO {co1} (a, b) VALUES ({n}, {n}); SAVEPOINT c; INSERT IGNORE INTO {co1} (a) VALUES ({n}), ({n}); ROLLBACK TO c; INSERT IGNORE INTO {co2} (a) VALUES ({n}); COMMIT
BEGIN; INSERT IGNORE INTO {co1} (a, b) VALUES ({n}, {n}); ROLLBACK
BEGIN; UPDATE {co1} SET id = id + 20 ORDER BY id DESC LIMIT 1; UPDATE {co1} SET id = id - 20 ORDER BY id DESC LIMIT 1; COMMIT
XA START 'c'; INSERT IGNORE INTO {co1} (a, b) VALUES ({n}, {n}), ({n}, {n}); DELETE FROM {co1} ORDER BY id DESC LIMIT 1; XA END 'c'; XA PREPARE 'c'; XA COMMIT 'c'
XA START 'd'; INSERT IGNORE INTO {co1} (a, b) VALUES ({n}, {n}), ({n}, {n}); XA END 'd'; XA PREPARE 'd'; XA ROLLBACK 'd'
ALTER TABLE {co1} AUTO_INCREMENT = {counter}
ALTER TABLE {co1} AUTO_INCREMENT = {n}
ALTER TABLE {co1} MODIFY id {integer} NOT NULL AUTO_INCREMENT
ALTER TABLE {co1} FORCE
ALTER TABLE {co1} ADD x{place1} INT, ALGORITHM = INSTANT
ALTER TABLE {co1} DROP x{place1}
ALTER TABLE {co1} COMMENT = 'n{n}'
ALTER TABLE {co1} PARTITION BY KEY () PARTITIONS {n}
ALTER TABLE {co1} REMOVE PARTITIONING
ALTER TABLE {co1} RENAME COLUMN id TO nr; INSERT IGNORE INTO {co1} (a, b) VALUES ({n}, {n}); ALTER TABLE {co1} RENAME COLUMN nr TO id
ALTER TABLE {co1} DROP PRIMARY KEY, ADD KEY (id)
ALTER TABLE {co1} ADD KEY k{place1} (id, a)
ALTER TABLE {co1} CONVERT TO CHARACTER SET {charset}
RENAME TABLE count0 TO countx, count1 TO count0, countx TO count1
CREATE TABLE countc LIKE {co1}; INSERT IGNORE INTO countc SELECT * FROM {co1}; DELETE FROM countc ORDER BY id DESC LIMIT 1; INSERT IGNORE INTO countc (b) VALUES (1); DROP TABLE {co1}; RENAME TABLE countc TO {co1}
CREATE TABLE IF NOT EXISTS countd (PRIMARY KEY (id)) SELECT * FROM {co1}; DROP TABLE countd
TRUNCATE {co1}
DROP TABLE IF EXISTS {co1}
OPTIMIZE TABLE {co1}
ANALYZE TABLE {co1}

-- family hidden
SET SESSION sql_generate_invisible_primary_key = 1; CREATE TABLE IF NOT EXISTS hid0 (a INT, s VARCHAR(20), f FLOAT(7,2), UNIQUE (a)); CREATE TABLE IF NOT EXISTS hid1 (a INT INVISIBLE, s TEXT, j JSON); SET SESSION sql_generate_invisible_primary_key = 0; CREATE TABLE IF NOT EXISTS hid2 (a INT, s VARCHAR(20) INVISIBLE DEFAULT 'd', f DOUBLE(9,1), UNIQUE (s(1)))
INSERT IGNORE INTO {hid1} (a, s) VALUES ({n}, {text}), ({n}, {text})
INSERT INTO {hid1} (s) VALUES ({text}), ({text})
INSERT IGNORE INTO {hid1} (a, s, my_row_id) VALUES ({n}, {text}, {n})
REPLACE INTO {hid1} (a, s) VALUES ({n}, {text})
INSERT INTO {hid1} (a) VALUES ({n}) ON DUPLICATE KEY UPDATE a = {number}
UPDATE IGNORE {hid1} SET my_row_id = my_row_id + 5 LIMIT 2
UPDATE IGNORE {hid1} SET a = {n}, s = {text} LIMIT {n}
DELETE FROM {hid1} LIMIT 2
DELETE FROM {hid1} WHERE a = {n}
ALTER TABLE {hid1} ALTER COLUMN my_row_id SET VISIBLE
ALTER TABLE {hid1} ALTER COLUMN my_row_id SET INVISIBLE
ALTER TABLE {hid1} DROP PRIMARY KEY, DROP COLUMN my_row_id
ALTER TABLE {hid1} ALTER COLUMN s SET INVISIBLE
ALTER TABLE {hid1} ALTER COLUMN s SET VISIBLE
ALTER TABLE {hid1} ADD x{place1} INT INVISIBLE DEFAULT {n}
ALTER TABLE {hid1} DROP x{place1}
CREATE TABLE hidc LIKE {hid1}; INSERT IGNORE INTO hidc SELECT * FROM {hid1}; INSERT INTO hidc () VALUES (); DROP TABLE hidc
CREATE TABLE IF NOT EXISTS hids SELECT * FROM {hid1}; INSERT INTO hids SELECT * FROM hids; DROP TABLE hids
TRUNCATE {hid1}
DROP TABLE IF EXISTS {hid1}
RENAME TABLE hid0 TO hidx, hid1 TO hid0, hidx TO hid1

-- family branches
CREATE TABLE IF NOT EXISTS root (id INT, k INT, code VARCHAR(9), up INT, PRIMARY KEY (id), UNIQUE (k, code), KEY (up)); CREATE TABLE IF NOT EXISTS twig (id INT AUTO_INCREMENT PRIMARY KEY, k INT, code VARCHAR(9), w INT, g INT AS (k * 2) {stored}, UNIQUE (w), KEY (g), CONSTRAINT fk_twig FOREIGN KEY (k, code) REFERENCES root (k, code) ON UPDATE {act} ON DELETE {act}); CREATE TABLE IF NOT EXISTS leaf (n INT, root INT, twig INT, f FLOAT(7,2), CONSTRAINT fk_leaf FOREIGN KEY (root) REFERENCES root (id) ON UPDATE {act} ON DELETE {act}, CONSTRAINT fk_leaf2 FOREIGN KEY (twig) REFERENCES twig (id) ON UPDATE {act} ON DELETE {act})
INSERT IGNORE INTO root VALUES ({n}, {n}, {text}, {n}), ({n}, {n}, {text}, NULL), ({n}, {n}, 'a', {n})
INSERT INTO root VALUES ({n}, {n}, 'a', NULL)
INSERT INTO root VALUES ({n}, {n}, 'a', NULL) ON DUPLICATE KEY UPDATE id = id + {n}, k = {n}
REPLACE INTO root VALUES ({n}, {n}, 'a', NULL), ({n}, {n}, 'A ', {n})
INSERT IGNORE INTO twig (k, code, w) SELECT k, code, {n} + id FROM root
INSERT IGNORE INTO twig (id, k, code, w) VALUES ({n}, {n}, 'a', {n}), ({n}, {n}, 'A', {n})
REPLACE INTO twig (k, code, w) SELECT k, UPPER(code), id FROM root LIMIT 2
INSERT IGNORE INTO leaf SELECT {n}, root.id, twig.id, {n}.125 FROM root JOIN twig USING (k)
INSERT IGNORE INTO leaf VALUES ({n}, {n}, {n}, 1), ({n}, NULL, {n}, 1), (1, {n}, NULL, 1)
UPDATE IGNORE root SET k = k + {n}
UPDATE root SET code = UPPER(code) WHERE id = {n}
UPDATE root SET id = id + 20 WHERE id = {n}
UPDATE IGNORE root SET up = {n} LIMIT {n}
UPDATE twig SET id = id + 30 ORDER BY id DESC LIMIT 2
UPDATE root JOIN twig USING (k) SET root.k = {n}, twig.w = twig.w + 1
UPDATE leaf SET f = f + 0.005, n = n + 1
DELETE FROM root WHERE id = {n}
DELETE FROM root WHERE up = {n}
DELETE IGNORE FROM root
DELETE FROM twig LIMIT {n}
DELETE root, twig FROM root JOIN twig USING (k) WHERE root.id > {n}
BEGIN; DELETE FROM root WHERE id = {n1}; INSERT IGNORE INTO root VALUES ({n1}, {n}, 'b', NULL); UPDATE root SET id = id + 1 ORDER BY id DESC; COMMIT
BEGIN; DELETE FROM root WHERE id = {n1}; SAVEPOINT s; DELETE FROM root; ROLLBACK TO s; DELETE FROM twig WHERE w > {n}; COMMIT
SET foreign_key_checks = 0; DELETE FROM root WHERE id = {n}; UPDATE root SET k = {n}, id = id + 3 WHERE id = {n}; SET foreign_key_checks = 1
ALTER TABLE root ADD CONSTRAINT fk_up FOREIGN KEY (up) REFERENCES root (id) ON DELETE CASCADE
ALTER TABLE root ADD CONSTRAINT fk_up FOREIGN KEY (up) REFERENCES root (id) ON DELETE {act}
ALTER TABLE root DROP FOREIGN KEY fk_up
ALTER TABLE twig DROP FOREIGN KEY fk_twig
ALTER TABLE twig ADD CONSTRAINT fk_twig FOREIGN KEY (k, code) REFERENCES root (k, code) ON UPDATE {act} ON DELETE {act}
ALTER TABLE leaf ADD PRIMARY KEY (n)
ALTER TABLE leaf DROP PRIMARY KEY
ALTER TABLE leaf DROP FOREIGN KEY fk_leaf
ALTER TABLE twig MODIFY code VARCHAR(20)
TRUNCATE leaf
DROP TABLE IF EXISTS leaf, twig, root
RENAME TABLE root TO roots, twig TO twigs; INSERT IGNORE INTO roots VALUES ({n}, {n}, 'x', NULL); DELETE FROM roots LIMIT 1; RENAME TABLE roots TO root, twigs TO twig

-- family texts
CREATE TABLE IF NOT EXISTS text0 (s VARCHAR(20) {collate}, t TEXT {collate}, c CHAR(9) {collate}, b VARBINARY(9), e ENUM('a','A ','b','ß') {collate}, m SET('x','y','ж') CHARACTER SET utf8mb4, {tkey}); CREATE TABLE IF NOT EXISTS text1 (s VARCHAR(20) {collate}, t TEXT {collate}, c CHAR(9) {collate}, b VARBINARY(9), e ENUM('a','b') {collate}, m SET('x','y') CHARACTER SET utf8mb4, {tkey}, UNIQUE (t(2)))
INSERT IGNORE INTO {te1} VALUES ({text}, {text}, {text}, {text}, {n}, {n}), ({text}, {text}, {text}, {text}, {n}, 0)
INSERT IGNORE INTO {te1} (s, t, c) SELECT c, s, t FROM {te2} LIMIT {n}
REPLACE INTO {te1} VALUES ({text}, {text}, {text}, {text}, {n} % 3, {n} % 4)
INSERT IGNORE INTO {te1} (s, t, c) VALUES ({text}, {text}, {text}) ON DUPLICATE KEY UPDATE {tassign}
UPDATE IGNORE {te1} SET {tassign}
UPDATE IGNORE {te1} SET {tassign} LIMIT {n}
UPDATE IGNORE {te1} JOIN {te2} USING (s) SET {te1}.t = {te2}.c, {te2}.c = {text}
DELETE FROM {te1} WHERE s = {text}
DELETE FROM {te1} WHERE t LIKE 'a%'
DELETE FROM {te1} LIMIT {n}
ALTER TABLE {te1} MODIFY s VARCHAR(30) {collate}
ALTER TABLE {te1} MODIFY c CHAR(12) {collate}
ALTER TABLE {te1} MODIFY e ENUM('b','a','c') {collate}
ALTER TABLE {te1} MODIFY m SET('y','x','z') CHARACTER SET latin1
ALTER TABLE {te1} CONVERT TO CHARACTER SET {charset}
ALTER TABLE {te1} DEFAULT CHARACTER SET {charset}, ADD n{place1} VARCHAR(9) DEFAULT 'é'
ALTER TABLE {te1} DROP n{place1}
ALTER TABLE {te1} ADD UNIQUE u{place1} (c(3), s)
ALTER TABLE {te1} ADD UNIQUE u{place1} (b(2), e)
ALTER TABLE {te1} ADD UNIQUE u{place1} ((LOWER(s)))
ALTER TABLE {te1} DROP KEY u{place1}
ALTER TABLE {te1} ADD FULLTEXT KEY ft{place1} (s, t)
ALTER TABLE {te1} DROP KEY ft{place1}
ALTER TABLE {te1} DROP PRIMARY KEY
ALTER TABLE {te1} ORDER BY s DESC
BEGIN; UPDATE IGNORE {te1} SET {tassign}; DELETE FROM {te1} LIMIT 1; INSERT IGNORE INTO {te1} (s, t, c) VALUES ({text}, {text}, {text}); COMMIT
TRUNCATE {te1}
DROP TABLE IF EXISTS {te1}

-- family abroad
CREATE DATABASE IF NOT EXISTS native_two CHARACTER SET {charset}; CREATE TABLE IF NOT EXISTS native_two.far (id INT PRIMARY KEY, s VARCHAR(20), v INT UNIQUE); CREATE TABLE IF NOT EXISTS near (id INT PRIMARY KEY, s VARCHAR(20), v INT, CONSTRAINT fk_far FOREIGN KEY (v) REFERENCES native_two.far (v) ON DELETE {act} ON UPDATE {act})
INSERT IGNORE INTO native_two.far VALUES ({n}, {text}, {n}), ({n}, {text}, {n})
INSERT IGNORE INTO near VALUES ({n}, {text}, {n}), ({n}, {text}, {n}), ({n}, {text}, NULL)
REPLACE INTO near SELECT * FROM native_two.far
INSERT IGNORE INTO native_two.far SELECT * FROM near
UPDATE IGNORE near JOIN native_two.far USING (id) SET near.s = {text}, far.v = far.v + 1
DELETE near, far FROM near JOIN native_two.far ON near.v = far.v WHERE far.id > {n}
DELETE FROM native_two.far WHERE id = {n}
UPDATE native_two.far SET v = v + 10 ORDER BY v DESC LIMIT 2
RENAME TABLE near TO native_two.near
RENAME TABLE native_two.near TO near
RENAME TABLE near TO native_two.between, native_two.far TO far; RENAME TABLE far TO native_two.far, native_two.between TO near
CREATE TABLE native_two.copied LIKE near; INSERT INTO native_two.copied SELECT * FROM near; DROP TABLE native_two.copied
CREATE TABLE native_two.made SELECT * FROM near; ALTER TABLE native_two.made RENAME TO made; DROP TABLE made
CREATE OR REPLACE VIEW native_two.seen AS SELECT near.*, far.s AS t FROM near JOIN native_two.far USING (id)
DROP VIEW IF EXISTS native_two.seen
DROP TABLE IF EXISTS near, native_two.far
DROP DATABASE IF EXISTS native_two
ALTER DATABASE native_two CHARACTER SET {charset}
ALTER TABLE near DROP FOREIGN KEY fk_far
CREATE INDEX i{place1} ON native_two.far (s)
TRUNCATE native_two.far
DROP PROCEDURE IF EXISTS native_two.p; CREATE PROCEDURE native_two.p() BEGIN INSERT IGNORE INTO far VALUES ({n}, {text}, {n});DELETE FROM far WHERE id = {n};END; CALL native_two.p()
DROP TRIGGER IF EXISTS far_t; CREATE TRIGGER far_t AFTER INSERT ON near FOR EACH ROW INSERT IGNORE INTO native_two.far VALUES (NEW.id + 10, NEW.s, NEW.id); INSERT IGNORE INTO near VALUES ({n}, {text}, NULL)

-- family ways
CREATE TABLE IF NOT EXISTS way (id INT NOT NULL, j JSON, p POINT, ts TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, dt DATETIME(2) DEFAULT CURRENT_TIMESTAMP(2), ti TIME(1), y YEAR, big LONGTEXT, n INT UNSIGNED, KEY ((CAST(j->'$.n' AS UNSIGNED ARRAY))), {wkey})
INSERT IGNORE INTO way (id, j, n, big) VALUES ({n}, {json}, {n}, REPEAT({text}, 1000)), ({n}, {json}, {n}, {text})
INSERT IGNORE INTO way (id, ts, dt, ti, y) VALUES ({n}, {date}, {date}, '12:13:14.56', {n}), ({n}, NOW(), DEFAULT, {number}, 1999)
INSERT IGNORE INTO way (id, p) VALUES ({n}, POINT({n}, {n})), ({n}, NULL)
INSERT IGNORE INTO way (id, n) VALUES ROW({n}, {n}), ROW({n}, {n})
INSERT IGNORE INTO way (id, n) WITH RECURSIVE q (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM q WHERE i < {n}) SELECT i, i * {n} FROM q
INSERT INTO way (id, n) VALUES ({n}, {n}) AS new ON DUPLICATE KEY UPDATE n = new.n + 1, j = {json}
INSERT IGNORE INTO way SELECT * FROM way ORDER BY id LIMIT 3
REPLACE INTO way (id, n, j) SELECT id + 1, n, j FROM way LIMIT {n}
UPDATE way SET j = JSON_SET(COALESCE(j, '{}'), '$.a', {n}, '$.n', JSON_ARRAY({n}, {n}))
UPDATE way SET j = JSON_REMOVE(j, '$.a') WHERE JSON_TYPE(j) = 'OBJECT'
UPDATE way SET j = JSON_ARRAY_APPEND(COALESCE(j, '[]'), '$', {n}) LIMIT 2
UPDATE way SET j = JSON_REPLACE(j, '$.a', 'xyz') WHERE id = {n}
UPDATE IGNORE way SET n = n - {n}, id = id + 1
UPDATE way SET ti = ti + INTERVAL {n} SECOND, y = 2000 + {n}, dt = dt + INTERVAL 1 DAY
UPDATE way SET big = CONCAT(big, {text}), p = POINT({n}, 1) WHERE id = {n}
UPDATE way SET ts = {date} ORDER BY id LIMIT 2
UPDATE way SET n = (SELECT COUNT(*) FROM raw) WHERE id > {n}
UPDATE way AS a JOIN (SELECT MAX(id) AS m FROM way) AS q ON a.id = q.m SET a.n = {n}
DELETE FROM way WHERE id IN (SELECT * FROM (SELECT id FROM way LIMIT 2) AS q)
DELETE a FROM way AS a JOIN way AS b ON a.id = b.id + 1
WITH q AS (SELECT {n} AS i) DELETE FROM way WHERE id = (SELECT i FROM q)
WITH q AS (SELECT {n} AS i) UPDATE way SET n = 7 WHERE id = (SELECT i FROM q)
ALTER TABLE way ADD v{place1} INT AS (n + 1) VIRTUAL, ADD w{place1} INT DEFAULT {n} FIRST
ALTER TABLE way DROP v{place1}, DROP w{place1}
ALTER TABLE way MODIFY ts TIMESTAMP(3) NULL
ALTER TABLE way MODIFY ts DATETIME NULL
ALTER TABLE way MODIFY n BIGINT
ALTER TABLE way MODIFY n TINYINT UNSIGNED
ALTER TABLE way MODIFY ti VARCHAR(20)
ALTER TABLE way MODIFY dt TIMESTAMP(1) NULL
ALTER TABLE way MODIFY dt DATE
ALTER TABLE way ADD SPATIAL KEY sp (p)
ALTER TABLE way ADD COLUMN (x{place1} INT DEFAULT 1, z{place1} VARCHAR(9) DEFAULT ('q'))
ALTER TABLE way DROP COLUMN x{place1}, DROP COLUMN z{place1}, ALGORITHM = INSTANT
ALTER TABLE way ADD c{place1} INT DEFAULT {n}, ALGORITHM = INSTANT
ALTER TABLE way DROP COLUMN c{place1}
ALTER TABLE way STATS_PERSISTENT = 0, AVG_ROW_LENGTH = 10, MAX_ROWS = 1000
ALTER TABLE way ROW_FORMAT = REDUNDANT
ALTER TABLE way KEY_BLOCK_SIZE = 4 ROW_FORMAT = COMPRESSED
ALTER TABLE way ENGINE_ATTRIBUTE = '{"a": 1}'
ALTER TABLE way DISABLE KEYS
ALTER TABLE way ALTER n SET DEFAULT 9, ALTER y DROP DEFAULT, COMMENT = 'it''s'
ALTER TABLE way CHANGE n m INT UNSIGNED, CHANGE y n YEAR; ALTER TABLE way CHANGE n y YEAR, CHANGE m n INT UNSIGNED
ALTER TABLE way RENAME COLUMN ti TO dt, RENAME COLUMN dt TO ti
BEGIN; UPDATE way SET id = id + 100; UPDATE way SET id = id - 100; COMMIT
LOCK TABLES way WRITE; UPDATE way SET n = n + 1; ALTER TABLE way COMMENT = 'locked'; DELETE FROM way LIMIT 1; UNLOCK TABLES
CREATE TEMPORARY TABLE way SELECT * FROM way; UPDATE way SET n = 0; DROP TEMPORARY TABLE way
TRUNCATE way
DROP TABLE IF EXISTS way

-- family bulk
CREATE TABLE IF NOT EXISTS bulk0 (id INT NOT NULL, a BIGINT UNSIGNED, s VARCHAR(20) {collate}, d DATE, dt DATETIME(3), ts TIMESTAMP NULL, n DECIMAL(9,3), e ENUM('x','y','z'), t TEXT {collate}, {bkey}); CREATE TABLE IF NOT EXISTS bulk1 (id INT NOT NULL, a INT, s CHAR(9) {collate}, d TIME(2), dt DATE, ts TIMESTAMP(1) NOT NULL DEFAULT CURRENT_TIMESTAMP(1), n DOUBLE(9,2), e SET('x','y'), t BLOB, {bkey})
INSERT IGNORE INTO {bu1} WITH RECURSIVE q (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM q WHERE i < {many}) SELECT i * {n}, i * {n}, CONCAT({text}, i % 7), {date}, DATE'2024-01-01' + INTERVAL i DAY, TIMESTAMP'2024-01-01 01:02:03.456' + INTERVAL i HOUR, i / 7, i % 4, IF(i % 5, CONCAT(i, {text}), NULL) FROM q
INSERT INTO {bu1} WITH RECURSIVE q (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM q WHERE i < {many}) SELECT i + 1000 * {n}, i + 1000 * {n}, {text}, NULL, NULL, NOW(), i, 1, 't' FROM q
REPLACE INTO {bu1} SELECT * FROM {bu2} LIMIT 600
INSERT IGNORE INTO {bu1} SELECT id + 10000, a + 10000, s, d, dt, ts, n, e, t FROM {bu2}
UPDATE IGNORE {bu1} SET a = a + 1, s = CONCAT(LEFT(s, 3), {n}) WHERE id % 2 = {n} % 2
UPDATE {bu1} SET n = n + 0.125, t = {text} WHERE id % 10 = {n}
UPDATE IGNORE {bu1} SET id = id + 1
UPDATE {bu1} SET id = id + 5 ORDER BY id DESC LIMIT 50
DELETE FROM {bu1} WHERE id % 3 = {n} % 3
DELETE FROM {bu1} WHERE id % 10 = {n}
DELETE FROM {bu1} ORDER BY a LIMIT 40
DELETE FROM {bu1} LIMIT 100
BEGIN; DELETE FROM {bu1} WHERE id < 100; INSERT IGNORE INTO {bu1} SELECT id, a, s, d, dt, ts, n, e, t FROM {bu2}; UPDATE IGNORE {bu1} SET e = 1, a = a - 1; COMMIT
ALTER TABLE {bu1} ADD x{place1} INT DEFAULT {n}
ALTER TABLE {bu1} DROP x{place1}
ALTER TABLE {bu1} CONVERT TO CHARACTER SET {charset}
TRUNCATE {bu1}
DROP TABLE IF EXISTS {bu1}

-- family upkeep
CREATE TABLE IF NOT EXISTS upkeep (id INT PRIMARY KEY, v INT, a TEXT, FULLTEXT KEY f (a)) PARTITION BY {ranges}; CREATE TABLE IF NOT EXISTS laid (id INT PRIMARY KEY, v INT, a TEXT)
CREATE TABLE IF NOT EXISTS upkeep (id INT PRIMARY KEY, v INT, a TEXT) PARTITION BY {ranges}; CREATE TABLE IF NOT EXISTS laid (id INT PRIMARY KEY, v INT, a TEXT); CREATE TABLE IF NOT EXISTS kept (id INT PRIMARY KEY, v INT, a TEXT, FULLTEXT KEY f (a))
INSERT IGNORE INTO upkeep (id, v, a) VALUES ({n1}, {n2}, {text}), ({n3}, {n1}, 'u')
REPLACE INTO laid (id, v, a) VALUES ({n1}, {n2}, 'l'), ({n2}, {n1}, {text}); ALTER TABLE upkeep EXCHANGE PARTITION {part} WITH TABLE laid WITHOUT VALIDATION
REPLACE INTO laid (id, v, a) VALUES ({n1}, {n2}, 'l'); ALTER TABLE upkeep EXCHANGE PARTITION {part} WITH TABLE laid WITHOUT VALIDATION; REPAIR TABLE upkeep
REPAIR TABLE upkeep; UPDATE upkeep SET v = {n1} WHERE id = {n2}
ALTER TABLE upkeep REPAIR PARTITION {part}
ALTER TABLE upkeep REPAIR PARTITION ALL; DELETE FROM upkeep WHERE id = {n1}
REPAIR NO_WRITE_TO_BINLOG TABLE kept
OPTIMIZE TABLE upkeep, kept
OPTIMIZE LOCAL TABLE kept
ALTER TABLE upkeep OPTIMIZE PARTITION {part}
ALTER TABLE upkeep REBUILD PARTITION {part}
ALTER TABLE upkeep ANALYZE PARTITION ALL
ALTER TABLE upkeep CHECK PARTITION ALL
ALTER TABLE upkeep REMOVE PARTITIONING
ALTER TABLE upkeep PARTITION BY {ranges}
ALTER TABLE kept DROP KEY f; OPTIMIZE TABLE kept; ALTER TABLE kept ADD COLUMN z{n1} INT DEFAULT 7, ALGORITHM=INSTANT
ALTER TABLE kept ADD FULLTEXT KEY f (a)
ALTER TABLE kept ADD COLUMN y{n1} INT DEFAULT {n2} FIRST, ALGORITHM=INSTANT; INSERT IGNORE INTO kept (id, v) VALUES ({n1}, {n2})
ALTER TABLE kept DROP COLUMN y{n1}, ALGORITHM=INSTANT
ALTER TABLE kept FORCE
ALTER TABLE kept ENGINE = InnoDB
INSERT IGNORE INTO kept (id, v, a) VALUES ({n1}, {n2}, {text})
UPDATE kept SET v = v + {n1} WHERE id < {n2}
ANALYZE TABLE kept UPDATE HISTOGRAM ON v WITH {n1} BUCKETS
ANALYZE TABLE kept DROP HISTOGRAM ON v
ANALYZE TABLE kept, upkeep
CHECK TABLE kept FOR UPGRADE
CHECKSUM TABLE kept, upkeep
DELETE FROM upkeep WHERE id > {n1}
TRUNCATE laid

-- family called
CREATE TABLE IF NOT EXISTS called (id INT PRIMARY KEY, v INT); CREATE TABLE IF NOT EXISTS nightly (id INT PRIMARY KEY, v INT, KEY (v)); CREATE PROCEDURE p_drop() BEGIN DROP TABLE IF EXISTS stage;TRUNCATE nightly;INSERT INTO nightly SELECT id, v FROM called;END; CREATE PROCEDURE p_temp() BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS brief (id INT);INSERT INTO brief VALUES (1);ALTER TABLE nightly ADD COLUMN w INT DEFAULT 3;CREATE INDEX w ON nightly (w);DROP TEMPORARY TABLE brief;UPDATE nightly SET w = v;END; CREATE PROCEDURE p_asked() BEGIN UPDATE called SET v = CONNECTION_ID() - CONNECTION_ID() + id;DROP INDEX w ON nightly;ALTER TABLE nightly DROP COLUMN w;END; CREATE PROCEDURE p_swap() BEGIN DROP TABLE IF EXISTS stage;CREATE TABLE stage (id INT PRIMARY KEY, v INT, KEY (v));INSERT INTO stage SELECT id, v + 1 FROM called;DROP TABLE IF EXISTS nightly;RENAME TABLE stage TO nightly;TRUNCATE called;END
INSERT IGNORE INTO called VALUES ({n1}, {n2}), ({n3}, {n1})
UPDATE called SET v = v + {n1}
CALL p_drop()
CALL p_temp()
CALL p_asked()
CALL p_swap()
CALL p_temp(); CALL p_asked(); CALL p_drop()
BEGIN; INSERT IGNORE INTO called VALUES ({n1}, 0); CALL p_drop(); ROLLBACK
CREATE TEMPORARY TABLE IF NOT EXISTS brief2 (id INT); INSERT INTO brief2 VALUES ({n1}); INSERT IGNORE INTO called SELECT id, id FROM brief2; CALL p_drop(); DROP TEMPORARY TABLE brief2
CREATE TEMPORARY TABLE nightly (id INT PRIMARY KEY, v INT, KEY (v)); CALL p_drop(); DROP TEMPORARY TABLE nightly
CREATE EVENT IF NOT EXISTS e_called ON SCHEDULE EVERY 1 YEAR STARTS '2099-01-01 00:00:00' DO CALL p_drop()
DROP EVENT IF EXISTS e_called

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

-- round
FLOAT(7,2)
FLOAT(7,2)
FLOAT(7,2) UNSIGNED
FLOAT(9,0)
FLOAT(5,3)
DOUBLE(9,1)
DOUBLE(15,4)
DOUBLE(9,3) UNSIGNED
FLOAT
DECIMAL(9,2)

-- unique
PRIMARY KEY (id), UNIQUE (f)
PRIMARY KEY (id), UNIQUE (f), UNIQUE (d)
PRIMARY KEY (f)
PRIMARY KEY (d, id), UNIQUE (a)
UNIQUE (f)
UNIQUE (f, d)
UNIQUE (id), UNIQUE (f)
KEY (id), KEY (f)
PRIMARY KEY (id), UNIQUE (f, n), UNIQUE (b, a)
PRIMARY KEY (id), UNIQUE ((f + d))
PRIMARY KEY (n, f)
PRIMARY KEY (b, d DESC)
UNIQUE (b, f), UNIQUE ((ROUND(d)))

-- ro
round0
round0
round1

-- rassign
f = d
d = f
f = f + 0.001
f = f + 1
f = -f
f = {n}.0049
d = {number}.25
id = id + 1
id = 9 - id
id = {n}
f = f + d, d = d - 0.5
a = {n}, f = {n}
f = NULL
b = (b + 1) % 8
f = DEFAULT, n = {n}
f = 9 - f, id = id + {n}

-- rindex
f
d
n
b
a
f DESC
(f + 0)
(d * 2)

-- co
count0
count1

-- ckey
PRIMARY KEY (id), UNIQUE (a)
PRIMARY KEY (id)
PRIMARY KEY (id), UNIQUE (b), UNIQUE (a, s)
UNIQUE (id), UNIQUE (b)
KEY (id), UNIQUE (b)
KEY (id)
PRIMARY KEY (a), KEY (id)
PRIMARY KEY (a), UNIQUE (id), UNIQUE (b)
PRIMARY KEY (a, id), KEY (id)
PRIMARY KEY (id, a)
KEY (id), UNIQUE (b, a)

-- cvalue
0
NULL
{n}
{n}
{counter}
-{n}
127
32767
65535
2147483647

-- cassign
id = id + 50
id = id + {n}
id = id - {n}
id = {n}
id = 0
id = -id
a = {n}
b = {n}
b = {n}, id = id + 3
a = a + 1
s = 'd', id = LAST_INSERT_ID(id)
b = LAST_INSERT_ID(), s = {text}
b = id

-- hid
hid0
hid1
hid2

-- te
text0
text1

-- collate
CHARACTER SET utf8mb4
CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci
CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_cs
CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CHARACTER SET latin1
CHARACTER SET latin1 COLLATE latin1_german2_ci
CHARACTER SET cp1251
CHARACTER SET gbk
CHARACTER SET ucs2
CHARACTER SET utf16le

-- tkey
PRIMARY KEY (s)
PRIMARY KEY (s(2), c)
PRIMARY KEY (t(3))
UNIQUE (s)
UNIQUE (c(2), b(1))
PRIMARY KEY (b)
PRIMARY KEY (c, e)
PRIMARY KEY (m, s)
KEY (s)
UNIQUE ((UPPER(s)))

-- tassign
s = t
s = UPPER(s)
s = CONCAT(s, ' ')
s = {text}
t = {text}
t = c, c = s
c = {text}
b = {text}
e = {n} % 3
m = {n} % 4
s = c, e = 1
b = CONCAT(b, x'00')

-- wkey
PRIMARY KEY (id)
PRIMARY KEY (id), UNIQUE (n)
UNIQUE (id)
KEY (n)
UNIQUE ((n + id))
PRIMARY KEY (id, y)
UNIQUE KEY (id, ts)

-- bu
bulk0
bulk1

-- bkey
PRIMARY KEY (id)
PRIMARY KEY (id), UNIQUE (a)
PRIMARY KEY (s, id)
KEY (id)
KEY (a), KEY (s(3))
UNIQUE (a, id)

-- many
5
510
700
900

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

-- ranges
RANGE (id) (PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN (6), PARTITION pm VALUES LESS THAN MAXVALUE)
HASH (id) PARTITIONS 3

-- part
p0
p1
pm

-- by
RANGE (k) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION pm VALUES LESS THAN MAXVALUE)
RANGE COLUMNS (k) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION pm VALUES LESS THAN (MAXVALUE))
LIST (k) (PARTITION p0 VALUES IN (5, 6), PARTITION p1 VALUES IN (15, 25))
HASH (k) PARTITIONS 3
LINEAR KEY ALGORITHM = 2 (id) PARTITIONS 4
KEY () PARTITIONS 2
