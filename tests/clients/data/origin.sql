-- A database with all types and all kinds of objects, for programs that dump and load it.
CREATE TABLE numbers (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, ti TINYINT, si SMALLINT UNSIGNED, mi MEDIUMINT, i INT ZEROFILL,
  b BIT(13), yes BOOL, de DECIMAL(30, 10), fl FLOAT, fd FLOAT(7, 3), dou DOUBLE, y YEAR
) COMMENT = 'it''s; "numbers" -- ünd \\ more';
INSERT INTO numbers VALUES
  (1, -128, 65535, -8388608, 7, b'1010101010101', TRUE, 12345678901234567890.0123456789, 1.5, 1234.568, 2.2250738585072014e-308, 1901),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (18446744073709551614, 127, 0, 8388607, 4294967295, b'0', FALSE, -0.0000000001, -3.4e38, -0.001, 1.7976931348623157e308, 2155),
  (9, 0, 1, 1, 1, b'1', 0, 0, 0.1, 0.1, -0.0, 0000);
CREATE TABLE times (
  d DATE, t TIME(6), dt DATETIME(3), ts TIMESTAMP(6) NULL, KEY (d)
);
SET sql_mode = '', time_zone = '+00:00';
INSERT INTO times VALUES ('0000-00-00', '-838:59:59', '0000-00-00', '1970-01-01 00:00:01'), ('2024-02-30', '0:0:0.000001', '9999-12-31 23:59:59.999', '2038-01-19 03:14:07.999999'), (NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL);
SET sql_mode = DEFAULT, time_zone = DEFAULT;
CREATE TABLE texts (
  k VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_german2_ci, c CHAR(9) CHARACTER SET utf16, tt TINYTEXT CHARACTER SET cp1251,
  mt MEDIUMTEXT, lt LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, e ENUM('a', 'it''s', 'ж') DEFAULT 'a',
  s SET('x', 'y z', 'ö'), UNIQUE KEY (k), FULLTEXT KEY words (mt)
) DEFAULT CHARSET = utf8mb4;
INSERT INTO texts VALUES
  ('straße', 'grün', 'жук', 'line\nnext\ttab \\ back '' quote " double \0 zero \Z', REPEAT('😀', 3000), 'it''s', 'x,ö'),
  ('', '', '', '', '', 'ж', ''), (NULL, NULL, NULL, NULL, NULL, NULL, NULL), ('\\N', 'NULL', ';', '/* no */ -- no', '${x}', 'a', 'y z');
CREATE TABLE bytes (
  b BINARY(4), vb VARBINARY(300), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB, id VARBINARY(16) NOT NULL, PRIMARY KEY (id)
);
INSERT INTO bytes VALUES
  (0x00010203, 0x270A5C00FF1A, '', UNHEX(REPEAT('00FF2227', 1000)), REPEAT('m', 70000), UNHEX(REPEAT('DEADBEEF0A0D09', 30000)), UUID_TO_BIN('5b2ad69c-0000-11ee-be56-0242ac120002')),
  (NULL, NULL, NULL, NULL, NULL, NULL, ''), ('', '', '', '', '', '', 0x00);
CREATE TABLE documents (id INT PRIMARY KEY, j JSON, v VECTOR(3), KEY nums ((CAST(j->'$.tags' AS UNSIGNED ARRAY))));
INSERT INTO documents VALUES (1, '{"tags": [1, 2], "a": {"b": [null, true, 1.5, "x\\"y\\n😀"]}}', STRING_TO_VECTOR('[1,2.5,-3]')), (2, NULL, NULL), (3, '"s"', NULL), (4, '[]', NULL), (5, 'null', NULL);
CREATE TABLE shapes (id INT PRIMARY KEY AUTO_INCREMENT, p POINT NOT NULL SRID 4326, g GEOMETRY, SPATIAL KEY (p)) AUTO_INCREMENT = 70;
INSERT INTO shapes (p, g) VALUES (ST_GeomFromText('POINT(48 11)', 4326), ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')), (ST_GeomFromText('POINT(-1 -2)', 4326), NULL);
CREATE TABLE derived (
  a INT, `b``c` VARCHAR(20) INVISIBLE DEFAULT (CONCAT('x', 'y')), s INT AS (a * 2) STORED, v VARCHAR(40) AS (CONCAT(`b``c`, '-', a)) VIRTUAL,
  CONSTRAINT positive CHECK (a > 0), KEY (s), KEY expr ((a + 1)), KEY hidden (a) INVISIBLE, KEY down (a DESC)
);
INSERT INTO derived (a, `b``c`) VALUES (1, 'z'), (2, NULL);
INSERT INTO derived (a) VALUES (3), (3);
CREATE TABLE parent (id INT PRIMARY KEY, code VARCHAR(10) UNIQUE, boss INT, FOREIGN KEY (boss) REFERENCES parent (id) ON DELETE SET NULL);
INSERT INTO parent VALUES (2, 'two', NULL), (1, 'one', 2);
CREATE TABLE child (id INT PRIMARY KEY AUTO_INCREMENT, parent INT NOT NULL, code VARCHAR(10), stamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  CONSTRAINT of_parent FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE, FOREIGN KEY (code) REFERENCES parent (code));
INSERT INTO child (parent, code) VALUES (1, 'two'), (2, NULL);
CREATE TABLE `a-b c.d;é` (`select` INT, `x y` INT) COMMENT 'a name';
INSERT INTO `a-b c.d;é` VALUES (1, 1), (1, 1);
CREATE TABLE empty_one (id INT);
CREATE TABLE parts (id INT NOT NULL, at DATE NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (YEAR(at)) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (2000), PARTITION rest VALUES LESS THAN MAXVALUE);
INSERT INTO parts VALUES (1, '1999-01-01'), (2, '2010-01-01');
CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, n INT, filler VARCHAR(200));
INSERT INTO big (n, filler) WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 1000) SELECT n, REPEAT(CHAR(64 + n % 60), n % 200) FROM r;
INSERT INTO big (n, filler) SELECT n, filler FROM big;
CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, said VARCHAR(200));
CREATE VIEW of_parents AS SELECT parent.code, COUNT(child.id) AS children FROM parent LEFT JOIN child ON child.parent = parent.id GROUP BY parent.code;
CREATE VIEW on_view AS SELECT * FROM of_parents WHERE children > 0;
CREATE SQL SECURITY INVOKER VIEW checked AS SELECT id, n FROM big WHERE n < 10 WITH CHECK OPTION;
DELIMITER ;;
CREATE FUNCTION twice (n INT) RETURNS INT DETERMINISTIC COMMENT 'doubles' RETURN n * 2;;
CREATE PROCEDURE add_logs (IN n INT)
BEGIN
  -- each in a statement of its own; they're few
  DECLARE i INT DEFAULT 0;
  WHILE i < n DO
    INSERT INTO log (said) VALUES (CONCAT('log; ', twice(i)));
    SET i = i + 1;
  END WHILE;
END;;
CREATE TRIGGER parent_told AFTER UPDATE ON parent FOR EACH ROW
BEGIN
  INSERT INTO log (said) VALUES (CONCAT(OLD.code, ' -> ', NEW.code));
END;;
CREATE TRIGGER child_code BEFORE INSERT ON child FOR EACH ROW SET NEW.code = COALESCE(NEW.code, 'one');;
CREATE EVENT yearly ON SCHEDULE EVERY 1 YEAR STARTS '2040-01-01 00:00:00' ON COMPLETION PRESERVE DISABLE DO DELETE FROM log;;
DELIMITER ;
CALL add_logs(3);
UPDATE parent SET code = 'eins' WHERE id = 1;
