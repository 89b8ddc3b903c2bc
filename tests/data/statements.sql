-- MySQL's statement forms, by the chapters of its 9.7 manual ("SQL Statements"), and what each one affects.
-- They run in this order on a server. Below a statement stands what the producer must make of it: `-- -> ` effects,
-- or the kind of a statement that is not replicated; or what it must refuse to guess: `-- -> unknown`.
-- `-- not run: …` says why a server of the sandbox can't show that we are right.
-- A USE and a SET at the beginning of a line only change the session.

-- CREATE DATABASE, ALTER DATABASE
CREATE DATABASE s;
-- -> CreateDatabase s
create schema if not exists s2 default character set = latin1 collate latin1_bin;
-- -> CreateDatabase s2
CREATE DATABASE `od``d "na-me.x` CHARSET utf8mb4 DEFAULT ENCRYPTION = 'N';
-- -> CreateDatabase od`d "na-me.x
CREATE DATABASE IF NOT EXISTS s;
-- -> CreateDatabase s
CREATE DATABASE `数据` /* пример */;
-- -> CreateDatabase 数据
CREATE DATABASE 1st;
-- -> CreateDatabase 1st
CREATE DATABASE if_not_exists;
-- -> CreateDatabase if_not_exists
USE s;
ALTER DATABASE s2 DEFAULT CHARACTER SET utf8mb4;
-- -> AlterDatabase s2
ALTER SCHEMA s2 COLLATE = utf8mb4_bin;
-- -> AlterDatabase s2
ALTER DATABASE CHARACTER SET latin1;
-- -> AlterDatabase s
ALTER DATABASE DEFAULT COLLATE utf8mb4_0900_ai_ci;
-- -> AlterDatabase s
ALTER DATABASE COLLATE utf8mb4_bin;
-- -> AlterDatabase s
ALTER SCHEMA DEFAULT CHARSET = utf8mb4 COLLATE utf8mb4_0900_ai_ci;
-- -> AlterDatabase s
ALTER DATABASE s2 READ ONLY = 1;
-- -> AlterDatabase s2
ALTER DATABASE s2 READ ONLY = DEFAULT;
-- -> AlterDatabase s2
ALTER DATABASE DEFAULT ENCRYPTION = 'N';
-- -> AlterDatabase s
ALTER DATABASE `od``d "na-me.x` DEFAULT ENCRYPTION 'N';
-- -> AlterDatabase od`d "na-me.x

-- CREATE TABLE
CREATE TABLE t1 (id INT PRIMARY KEY, a INT, b VARCHAR(20), KEY k (a));
-- -> CreateTable s.t1
CREATE TABLE IF NOT EXISTS t1 (id INT);
-- -> CreateTable s.t1
CREATE TABLE IF NOT EXISTS s.t2 (id INT NOT NULL, a INT, PRIMARY KEY (id)) ENGINE = InnoDB COMMENT 'RENAME TO x';
-- -> CreateTable s.t2
CREATE TABLE s2.t1 LIKE t1;
-- -> CreateTable s2.t1
CREATE TABLE IF NOT EXISTS s2.t2 (LIKE s.t2);
-- -> CreateTable s2.t2
CREATE TABLE t3 (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES s2.t1 (id) ON DELETE CASCADE);
-- -> CreateTable s.t3
CREATE TABLE t4 SELECT id, a FROM s2.t1;
-- -> CreateTable s.t4, not faithfully
CREATE TABLE t5 (x INT) AS SELECT 1 AS x, 2 AS y;
-- -> CreateTable s.t5, not faithfully
CREATE TABLE t6 (x INT UNIQUE) IGNORE SELECT 1 AS x UNION SELECT 2;
-- -> CreateTable s.t6, not faithfully
CREATE TABLE t7 (x INT PRIMARY KEY) REPLACE AS WITH q AS (SELECT 3 AS x) SELECT * FROM q;
-- -> CreateTable s.t7, not faithfully
CREATE TABLE t8 TABLE t5;
-- -> CreateTable s.t8, not faithfully
CREATE TABLE t9 VALUES ROW(1, 2), ROW(3, 4);
-- -> CreateTable s.t9, not faithfully
CREATE TABLE t10 (x INT) START TRANSACTION;
-- -> CreateTable s.t10

CREATE TABLE t11 (id INT, d DATE) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
-- -> CreateTable s.t11
CREATE TABLE t12 (id INT) PARTITION BY HASH (id) PARTITIONS 4;
-- -> CreateTable s.t12
CREATE TABLE t13 (id INT, k INT) PARTITION BY RANGE (id) SUBPARTITION BY HASH (k) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
-- -> CreateTable s.t13
CREATE TABLE t14 (a INT, b INT AS (a + 1) VIRTUAL, c INT GENERATED ALWAYS AS (a * 2) STORED NOT NULL, INDEX ((a + b)), CHECK (a > 0), CONSTRAINT c1 CHECK (b > 1) NOT ENFORCED);
-- -> CreateTable s.t14
CREATE TABLE `t``15` (`a``b` INT, `drop table x` INT);
-- -> CreateTable s.t`15
CREATE TABLE `s`.`t 16` (i INT);
-- -> CreateTable s.t 16
CREATE TABLE s . t17 (i INT);
-- -> CreateTable s.t17
CREATE TABLE `t.18` (i INT);
-- -> CreateTable s.t.18
CREATE TABLE t19 (i INT);
-- -> CreateTable s.t19
CREATE TABLE s.select (i INT);
-- -> CreateTable s.select
CREATE TABLE s.table (i INT);
-- -> CreateTable s.table
CREATE TABLE 20t (i INT);
-- -> CreateTable s.20t
CREATE TABLE `таблица` (`колонка` INT COMMENT 'комментарий; DROP TABLE t1');
-- -> CreateTable s.таблица
CREATE TABLE таблица2 (i INT);
-- -> CreateTable s.таблица2
CREATE TABLE t$21_ (i INT);
-- -> CreateTable s.t$21_
CREATE TABLE view (i INT);
-- -> CreateTable s.view
CREATE TABLE event (i INT);
-- -> CreateTable s.event
CREATE TABLE temporary (i INT);
-- -> CreateTable s.temporary
CREATE TABLE user (i INT);
-- -> CreateTable s.user
CREATE TABLE server (i INT);
-- -> CreateTable s.server
CREATE TABLE definer (i INT);
-- -> CreateTable s.definer
CREATE/**/TABLE/**/t22(i INT);
-- -> CreateTable s.t22
/* first */ CREATE -- second
TABLE # third
t23 /* fourth */ (i INT);
-- -> CreateTable s.t23
CREATE /*!50100 TABLE */ t24 (i INT) /*!50100 PARTITION BY HASH (i) PARTITIONS 2 */;
-- -> CreateTable s.t24
/*!50003 CREATE */ /*!50020 TABLE t25 (i INT) */;
-- -> CreateTable s.t25
CREATE TABLE /*!32302 IF NOT EXISTS */ t26 (i INT);
-- -> CreateTable s.t26
CREATE TABLE /*!500001x */ (i INT);
-- -> CreateTable s.1x
CREATE TABLE /*!5x */ (i INT);
-- -> CreateTable s.5x
CREATE TABLE /*!50000 */y /*!*/ (i INT);
-- -> CreateTable s.y
CREATE TABLE tables (i INT);
-- -> CreateTable s.tables
TRUNCATE tables;
-- -> TruncateTable s.tables
CREATE DATABASE encryption;
-- -> CreateDatabase encryption
ALTER DATABASE encryption COLLATE utf8mb4_bin;
-- -> AlterDatabase encryption
DROP DATABASE encryption;
-- -> DropDatabase encryption
CREATE TABLE t26b (i INT) CONNECTION = 'mysql://u:secret@h/d/t';
-- -> CreateTable s.t26b, not faithfully
CREATE TABLE t26e (i INT) CONNECTION = 'fish' ENGINE=`InnoDB` PASSWORD = 'fish';
-- -> CreateTable s.t26e
ALTER TABLE t26e CONNECTION = 'fish', ENGINE = 'MyISAM';
-- -> AlterTable s.t26e
ALTER TABLE t26e ADD engine INT, CONNECTION = 'mysql://u:secret@h/d/t';
-- -> AlterTable s.t26e, not faithfully
CREATE TABLE t26c (connection VARCHAR(9) DEFAULT 'x', CHECK (connection = 'x'));
-- -> CreateTable s.t26c
CREATE TABLE t27 /* 99999 (i INT) */ (j INT);
-- -> CreateTable s.t27
CREATE TABLE /* 99999 s2. */ t28 (j INT);
-- -> CreateTable s.t28
CREATE TABLE /*! s2. */ t28 (j INT);
-- -> CreateTable s2.t28
CREATE TABLE /*!080000 s2. */ t29 (j INT);
-- -> CreateTable s2.t29
CREATE TABLE /*M! s2. */ t30 (j INT);
-- -> CreateTable s.t30
CREATE TABLE /*M!100000 s2. */ t31 (j INT);
-- -> CreateTable s.t31
CREATE TABLE t32 (i INT COMMENT 'it''s', j VARCHAR(9) DEFAULT 'a\'b', k CHAR(1) DEFAULT "\"") COMMENT = "RENAME x TO y";
-- -> CreateTable s.t32
CREATE TABLE t33 (i INT) ENGINE = MyISAM;
-- -> CreateTable s.t33
CREATE TABLE t34 (i INT) ENGINE = MEMORY;
-- -> CreateTable s.t34
CREATE TABLE t35 (i INT) ENGINE = MERGE UNION = (t33) INSERT_METHOD = LAST;
-- -> CreateTable s.t35
CREATE TABLE t36 (i INT) ENGINE = BLACKHOLE;
-- -> CreateTable s.t36
CREATE TABLE t37 (a TEXT NOT NULL) ENGINE = CSV;
-- -> CreateTable s.t37
CREATE TABLE t38 (i INT) ENGINE = ARCHIVE;
-- -> CreateTable s.t38
CREATE TABLE t39 (i INT) ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8 AUTO_INCREMENT = 5, AVG_ROW_LENGTH 5 CHECKSUM 1 STATS_PERSISTENT DEFAULT;
-- -> CreateTable s.t39
CREATE TABLE t40 (g GEOMETRY NOT NULL SRID 4326, SPATIAL INDEX (g), v VECTOR(3), j JSON, FULLTEXT KEY ft (tx), tx TEXT);
-- -> CreateTable s.t40
CREATE TABLE t41 (i INT INVISIBLE, j INT DEFAULT (i + 1), k TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
-- -> CreateTable s.t41
CREATE TABLE t42 (i SERIAL, b BOOLEAN, e ENUM('RENAME', 'TO', ')'), z SET('x', '('));
-- -> CreateTable s.t42
CREATE TEMPORARY TABLE tmp1 (i INT);
-- -> temporary
CREATE TEMPORARY TABLE IF NOT EXISTS tmp2 LIKE t1;
-- -> temporary
CREATE /*!40000 TEMPORARY */ TABLE tmp3 SELECT 1 AS one;
-- -> temporary
CREATE TABLE t43 LIKE tmp1;
-- -> CreateTable s.t43
CREATE TABLE t44 (i INT) AUTOEXTEND_SIZE = 4M COMMENT ')';
-- -> CreateTable s.t44
CREATE EXTERNAL TABLE t45 (i INT) ENGINE = lakehouse;
-- -> CreateTable s.t45
-- not run: the engine is HeatWave's

-- ALTER TABLE
ALTER TABLE t1 ADD COLUMN c INT;
-- -> AlterTable s.t1
ALTER TABLE t1 ADD d INT AFTER a, ADD COLUMN (e INT, f INT), ALGORITHM = INPLACE, LOCK = NONE;
-- -> AlterTable s.t1
ALTER TABLE s.t1 DROP COLUMN f;
-- -> AlterTable s.t1
ALTER TABLE s2.t1 CHANGE a aa BIGINT FIRST, MODIFY COLUMN b VARCHAR(40) NOT NULL DEFAULT 'RENAME TO x';
-- -> AlterTable s2.t1
ALTER TABLE t1 ADD UNIQUE KEY u (c), ADD INDEX i2 USING BTREE (d DESC), ADD CONSTRAINT ck CHECK (d > 0);
-- -> AlterTable s.t1
ALTER TABLE t3 DROP FOREIGN KEY t3_ibfk_1, ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES s2.t2 (id);
-- -> AlterTable s.t3
ALTER TABLE t1 DROP INDEX u, DROP KEY i2, DROP CHECK ck;
-- -> AlterTable s.t1
ALTER TABLE t1 RENAME COLUMN c TO cc, RENAME INDEX k TO kk;
-- -> AlterTable s.t1
ALTER TABLE t1 RENAME KEY kk TO k;
-- -> AlterTable s.t1
ALTER TABLE t1 ALTER COLUMN d SET DEFAULT 5, ALTER INDEX k INVISIBLE, ALTER COLUMN e DROP DEFAULT;
-- -> AlterTable s.t1
ALTER TABLE t14 ALTER CHECK c1 ENFORCED, ALTER COLUMN a SET INVISIBLE;
-- -> AlterTable s.t14
ALTER TABLE t2 RENAME TO t2a;
-- -> AlterTable s.t2, RenameTable s.t2 s.t2a
ALTER TABLE t2a RENAME AS t2b;
-- -> AlterTable s.t2a, RenameTable s.t2a s.t2b
ALTER TABLE t2b RENAME = t2c;
-- -> AlterTable s.t2b, RenameTable s.t2b s.t2c
ALTER TABLE t2c RENAME t2d;
-- -> AlterTable s.t2c, RenameTable s.t2c s.t2d
ALTER TABLE t2d ADD z INT, RENAME s2.t2e, COMMENT = 'moved';
-- -> AlterTable s.t2d, RenameTable s.t2d s2.t2e
ALTER TABLE s2.t2e RENAME t2;
-- -> AlterTable s2.t2e, RenameTable s2.t2e s.t2
ALTER TABLE t2 RENAME `to`;
-- -> AlterTable s.t2, RenameTable s.t2 s.to
ALTER TABLE `to` RENAME TO `as`;
-- -> AlterTable s.to, RenameTable s.to s.as
ALTER TABLE `as` RENAME `column`;
-- -> AlterTable s.as, RenameTable s.as s.column
ALTER TABLE `column` RENAME `t2`;
-- -> AlterTable s.column, RenameTable s.column s.t2
ALTER TABLE t2 ADD exchange INT, ADD import INT, ADD discard INT;
-- -> AlterTable s.t2
ALTER TABLE t2 DROP import, DROP COLUMN discard, DROP exchange;
-- -> AlterTable s.t2
ALTER TABLE t2 ADD import INT, TABLESPACE = innodb_file_per_table;
-- -> AlterTable s.t2
ALTER TABLE t2 RENAME COLUMN import TO tablespace;
-- -> AlterTable s.t2
ALTER TABLE t2 ENGINE = InnoDB, FORCE;
-- -> AlterTable s.t2
ALTER TABLE t2 CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin;
-- -> AlterTable s.t2
ALTER TABLE t2 DEFAULT CHARACTER SET = utf8mb4;
-- -> AlterTable s.t2
ALTER TABLE t2 DISABLE KEYS;
-- -> AlterTable s.t2
ALTER TABLE t2 COMMENT 'a, RENAME TO b' STATS_SAMPLE_PAGES = 10;
-- -> AlterTable s.t2
ALTER TABLE t2 ADD w INT COMMENT "RENAME TO b" /* , RENAME TO c */;
-- -> AlterTable s.t2
ALTER TABLE t2 DROP PRIMARY KEY, ADD PRIMARY KEY (id, a);
-- -> AlterTable s.t2
ALTER TABLE t2;
-- -> AlterTable s.t2
ALTER TABLE t2 ADD COLUMN s1 INT DEFAULT (CASE WHEN 1 = 1 THEN 2 ELSE 3 END);
-- -> AlterTable s.t2
ALTER TABLE t2 AUTOEXTEND_SIZE = 4M;
-- -> AlterTable s.t2
ALTER TABLE t2 SECONDARY_ENGINE = NULL;
-- -> AlterTable s.t2
ALTER TABLE t11 ADD INDEX (d), ALGORITHM = COPY;
-- -> AlterTable s.t11
ALTER TABLE t13 ADD PARTITION (PARTITION p2 VALUES LESS THAN (30));
-- -> AlterTable s.t13
ALTER TABLE t12 ADD PARTITION PARTITIONS 2;
-- -> AlterTable s.t12
ALTER TABLE t12 COALESCE PARTITION 2;
-- -> AlterTable s.t12
ALTER TABLE t13 DROP PARTITION p2;
-- -> AlterTable s.t13
ALTER TABLE t11 REORGANIZE PARTITION p0 INTO (PARTITION n0 VALUES LESS THAN (5), PARTITION n1 VALUES LESS THAN (10));
-- -> AlterTable s.t11
ALTER TABLE t11 REBUILD PARTITION n0, n1;
-- -> AlterTable s.t11
ALTER TABLE t11 REMOVE PARTITIONING;
-- -> AlterTable s.t11
ALTER TABLE t11 PARTITION BY LIST (id) (PARTITION p1 VALUES IN (1, 2), PARTITION p2 VALUES IN (NULL));
-- -> AlterTable s.t11
ALTER TABLE t11 TRUNCATE PARTITION p1;
-- -> AlterTable s.t11
ALTER TABLE t11 TRUNCATE PARTITION ALL;
-- -> AlterTable s.t11
ALTER TABLE t11 ANALYZE PARTITION p1;
-- -> MaintainTable s.t11
ALTER TABLE t11 CHECK PARTITION ALL;
-- -> admin
ALTER TABLE t11 OPTIMIZE PARTITION p1;
-- -> MaintainTable s.t11
ALTER TABLE t11 REPAIR PARTITION p1;
-- -> MaintainTable s.t11
CREATE TABLE t46 (id INT, d DATE, KEY (d));
-- -> CreateTable s.t46
ALTER TABLE t11 EXCHANGE PARTITION p1 WITH TABLE t46;
-- -> AlterTable s.t11, AlterTable s.t46
ALTER TABLE t11 EXCHANGE PARTITION p1 WITH TABLE s.t46 WITHOUT VALIDATION;
-- -> AlterTable s.t11, AlterTable s.t46
ALTER TABLE t46 DISCARD TABLESPACE;
-- -> AlterTable s.t46, TruncateTable s.t46
ALTER TABLE t46 IMPORT TABLESPACE;
-- -> AlterTable s.t46, not faithfully
-- not run: there is no file to import
DROP TABLE t46;
-- -> DropTable s.t46
ALTER TABLE t11 DISCARD PARTITION p1 TABLESPACE;
-- -> AlterTable s.t11, not faithfully
ALTER TABLE t11 DISCARD PARTITION p1, p2 TABLESPACE;
-- -> AlterTable s.t11, not faithfully
-- not run: the table may have no such partition
ALTER TABLE t11 DISCARD PARTITION ALL TABLESPACE;
-- -> AlterTable s.t11, TruncateTable s.t11
ALTER TABLE t11 IMPORT PARTITION ALL TABLESPACE;
-- -> AlterTable s.t11, not faithfully
-- not run: there is no file to import
ALTER TABLE t1 SECONDARY_LOAD;
-- -> admin
-- not run: needs HeatWave
ALTER TABLE t1 SECONDARY_UNLOAD;
-- -> admin
-- not run: needs HeatWave
ALTER TABLE t26b CONNECTION 'mysql://u:secret@h/d/t';
-- -> AlterTable s.t26b, not faithfully
CREATE TABLE t47 (i INT);
-- -> CreateTable s.t47
ALTER TABLE t47 ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST;
-- -> AlterTable s.t47
ALTER TABLE t47 MODIFY id INT, ADD COLUMN n INT(5) NOT NULL COMMENT 'x' UNIQUE KEY AUTO_INCREMENT;
-- -> AlterTable s.t47
ALTER TABLE t47 DROP n, ADD (a INT, b BIGINT(20) AUTO_INCREMENT, KEY (b));
-- -> AlterTable s.t47
ALTER TABLE t47 DROP b, ADD serial SERIAL;
-- -> AlterTable s.t47
ALTER TABLE t47 ADD auto_increment INT, ADD KEY k (auto_increment), ADD UNIQUE KEY (i, auto_increment), ADD c INT AFTER serial, ADD d INT DEFAULT (1 + auto_increment), AUTO_INCREMENT = 7;
-- -> AlterTable s.t47
ALTER TABLE t47 MODIFY serial BIGINT AUTO_INCREMENT;
-- -> AlterTable s.t47
ALTER TABLE t47 MODIFY serial BIGINT, DROP PRIMARY KEY, ADD nr INT AUTO_INCREMENT PRIMARY KEY;
-- -> AlterTable s.t47
ALTER TABLE t47 ADD e INT DEFAULT (CONNECTION_ID());
-- -> AlterTable s.t47, not faithfully
ALTER TABLE t47 ADD f DATETIME DEFAULT (NOW()), ADD KEY connection_id (f);
-- -> AlterTable s.t47
ALTER TABLE t1 ORDER BY a;
-- -> AlterTable s.t1
ALTER TABLE t33 ORDER BY i DESC, RENAME TO t33b;
-- -> AlterTable s.t33, RenameTable s.t33 s.t33b
-- not run: no server accepts it, ORDER BY comes last
ALTER TABLE t1 ADD INDEX ix ((a + 1)), ADD FULLTEXT INDEX fx (b), ADD SPATIAL INDEX (a);
-- -> AlterTable s.t1
-- not run: a has no geometry
/*!50000 ALTER TABLE t1 */ /*!50000 ADD g INT */;
-- -> AlterTable s.t1
ALTER TABLE /*! s2.t1 */ ADD g INT;
-- -> AlterTable s2.t1
ALTER TABLE t1 /* 99999 RENAME TO x, */ ADD h INT;
-- -> AlterTable s.t1
ALTER TABLE t1 /*M! RENAME TO x, */ ADD hh INT;
-- -> AlterTable s.t1

-- CREATE INDEX, DROP INDEX
CREATE INDEX x1 ON t1 (a);
-- -> CreateIndex s.t1
CREATE UNIQUE INDEX x2 USING BTREE ON s2.t1 (aa, b(5));
-- -> CreateIndex s2.t1
CREATE FULLTEXT INDEX x3 ON t1 (b) COMMENT 'x' ALGORITHM = INPLACE LOCK = DEFAULT;
-- -> CreateIndex s.t1
CREATE SPATIAL INDEX x4 ON t40 (g);
-- -> CreateIndex s.t40
CREATE INDEX `on` ON t1 ((a + 1), (b)) INVISIBLE;
-- -> CreateIndex s.t1
-- not run: an expression key is not a column in brackets
CREATE INDEX `ON t2` ON t1 ((a + 1));
-- -> CreateIndex s.t1
DROP INDEX `ON t2` ON t1;
-- -> DropIndex s.t1
DROP INDEX x1 ON s.t1 ALGORITHM = INPLACE LOCK = NONE;
-- -> DropIndex s.t1
DROP INDEX `PRIMARY` ON t2;
-- -> DropIndex s.t2
DROP INDEX /* it */ x2 /* is */ ON /* on */ s2.t1;
-- -> DropIndex s2.t1

-- RENAME TABLE, TRUNCATE, DROP TABLE
RENAME TABLE t4 TO t4a;
-- -> RenameTable s.t4 s.t4a
RENAME TABLE t5 TO t5a, s2.t1 TO t4, t4a TO s2.`t4 b`;
-- -> RenameTable s.t5 s.t5a, RenameTable s2.t1 s.t4, RenameTable s.t4a s2.t4 b
RENAME TABLES t6 TO t7b, t7 TO t6, t7b TO t7;
-- -> RenameTable s.t6 s.t7b, RenameTable s.t7 s.t6, RenameTable s.t7b s.t7
RENAME TABLE `t``15` TO `t.15`, s . `t 16` TO s.t16;
-- -> RenameTable s.t`15 s.t.15, RenameTable s.t 16 s.t16
TRUNCATE t1;
-- -> TruncateTable s.t1
CREATE TABLE s2.t1x (i INT);
-- -> CreateTable s2.t1x
TRUNCATE TABLE s2.t1x;
-- -> TruncateTable s2.t1x
TRUNCATE `t.18`;
-- -> TruncateTable s.t.18
TRUNCATE TABLE /*Monthly*/ t4;
-- -> TruncateTable s.t4
CREATE TABLE `table` (i INT);
-- -> CreateTable s.table
-- not run: it is there already
TRUNCATE `table`;
-- -> TruncateTable s.table
DROP TABLE `table`;
-- -> DropTable s.table
DROP TABLE t16, s.`t.15`, s2.`t4 b`;
-- -> DropTable s.t16, DropTable s.t.15, DropTable s2.t4 b
DROP TABLE IF EXISTS t17, nosuch, s2.nosuch;
-- -> DropTable s.t17, DropTable s.nosuch, DropTable s2.nosuch
DROP TABLES t19, s.select RESTRICT;
-- -> DropTable s.t19, DropTable s.select
DROP TABLE IF EXISTS `t22` CASCADE;
-- -> DropTable s.t22
DROP TEMPORARY TABLE tmp1;
-- -> temporary
DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `tmp2`,`tmp3`;
-- -> temporary
DROP TABLE `t23`,`t24` /* generated by server */;
-- -> DropTable s.t23, DropTable s.t24
DROP TABLE таблица, `таблица2`;
-- -> DropTable s.таблица, DropTable s.таблица2
DROP TABLE view, event, temporary, user, server, definer;
-- -> DropTable s.view, DropTable s.event, DropTable s.temporary, DropTable s.user, DropTable s.server, DropTable s.definer
DROP TABLE IF EXISTS `if`;
-- -> DropTable s.if

-- CREATE VIEW, ALTER VIEW, DROP VIEW
CREATE VIEW v1 AS SELECT * FROM t1;
-- -> CreateView s.v1
CREATE OR REPLACE VIEW s.v1 (x, y) AS SELECT id, a FROM t1;
-- -> CreateView s.v1
CREATE ALGORITHM = MERGE DEFINER = root@localhost SQL SECURITY INVOKER VIEW v2 AS SELECT 1 AS one WITH CASCADED CHECK OPTION;
-- -> CreateView s.v2
-- not run: it can't be updated
CREATE ALGORITHM = TEMPTABLE DEFINER = 'root'@'localhost' SQL SECURITY DEFINER VIEW v2 AS SELECT 1 AS one;
-- -> CreateView s.v2
CREATE DEFINER = CURRENT_USER() VIEW v3 AS SELECT id FROM v1_missing;
-- -> CreateView s.v3
-- not run: it names what is missing
CREATE DEFINER = CURRENT_USER VIEW s2.v3 AS TABLE s.t1;
-- -> CreateView s2.v3
CREATE DEFINER = CURRENT_USER() VIEW s2.v4 AS VALUES ROW(1);
-- -> CreateView s2.v4
CREATE VIEW IF NOT EXISTS v5 AS WITH q AS (SELECT 1 AS a) SELECT * FROM q;
-- -> CreateView s.v5
CREATE DEFINER = `table`@`%` VIEW v6 AS SELECT 1 AS one;
-- -> CreateView s.v6
CREATE DEFINER = nobody@host.table.example VIEW v7 AS SELECT 1 AS one;
-- -> CreateView s.v7
CREATE OR REPLACE ALGORITHM = UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v8` AS SELECT 'x' AS `table`;
-- -> CreateView s.v8
ALTER VIEW v1 AS SELECT id FROM t1;
-- -> AlterView s.v1
ALTER ALGORITHM = MERGE DEFINER = root@localhost SQL SECURITY DEFINER VIEW s2.v3 (z) AS SELECT id FROM s.t1;
-- -> AlterView s2.v3
DROP VIEW v1;
-- -> DropView s.v1
DROP VIEW IF EXISTS v2, s2.v3, nosuch CASCADE;
-- -> DropView s.v2, DropView s2.v3, DropView s.nosuch
RENAME TABLE v5 TO v5a;
-- -> RenameTable s.v5 s.v5a
CREATE TABLE jt (id INT PRIMARY KEY, n INT);
-- -> CreateTable s.jt
CREATE JSON RELATIONAL DUALITY VIEW jv1 AS SELECT JSON_DUALITY_OBJECT('_id': id, 'n': n) FROM jt;
-- -> CreateView s.jv1
CREATE OR REPLACE JSON DUALITY VIEW jv1 AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM jt;
-- -> CreateView s.jv1
CREATE OR REPLACE DEFINER = root@localhost SQL SECURITY INVOKER JSON DUALITY VIEW s2.jv2 AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM s.jt;
-- -> CreateView s2.jv2
ALTER JSON RELATIONAL DUALITY VIEW jv1 AS SELECT JSON_DUALITY_OBJECT('_id': id, 'm': n) FROM jt;
-- -> AlterView s.jv1
DROP VIEW jv1, s2.jv2;
-- -> DropView s.jv1, DropView s2.jv2
CREATE MATERIALIZED VIEW mv1 AS SELECT id FROM jt;
-- -> CreateView s.mv1
DROP VIEW mv1;
-- -> DropView s.mv1

-- CREATE PROCEDURE, FUNCTION, LIBRARY
CREATE PROCEDURE p1() SELECT 1;
-- -> CreateProcedure s.p1
CREATE DEFINER = root@localhost PROCEDURE s2.p1(IN a INT, OUT b INT) COMMENT 'DROP TABLE t1' LANGUAGE SQL NOT DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER BEGIN DROP TABLE IF EXISTS t1; SELECT 1; END;
-- -> CreateProcedure s2.p1
CREATE PROCEDURE IF NOT EXISTS p1() SELECT 2;
-- -> CreateProcedure s.p1
CREATE DEFINER=`root`@`localhost` PROCEDURE `p 2`()
BEGIN
  -- DROP TABLE t1
  CREATE TABLE inside (i INT); RENAME TABLE a TO b;
END;
-- -> CreateProcedure s.p 2
CREATE FUNCTION f1(a INT) RETURNS INT DETERMINISTIC RETURN a + 1;
-- -> CreateFunction s.f1
CREATE FUNCTION IF NOT EXISTS s2.f1() RETURNS VARCHAR(20) CHARACTER SET utf8mb4 NO SQL RETURN 'SONAME';
-- -> CreateFunction s2.f1
CREATE DEFINER = CURRENT_USER FUNCTION f2() RETURNS INT NO SQL SQL SECURITY DEFINER RETURN (SELECT 1);
-- -> CreateFunction s.f2
CREATE FUNCTION fjs(a INT) RETURNS INT LANGUAGE JAVASCRIPT AS $$ let table = "it's"; return a; $$;
-- -> CreateFunction s.fjs
-- not run: MLE is a component of the Enterprise Edition
CREATE FUNCTION soname RETURNS STRING SONAME 'udf_example.so';
-- -> admin
-- not run: there is no such library
CREATE AGGREGATE FUNCTION IF NOT EXISTS returns RETURNS INTEGER SONAME 'udf_example.so';
-- -> admin
-- not run: there is no such library
CREATE FUNCTION f3() RETURNS VARCHAR(9) NO SQL RETURN CONCAT('a', 'SONAME');
-- -> CreateFunction s.f3
CREATE LIBRARY lib1 LANGUAGE JAVASCRIPT AS $$ export function f(n) { return n } /* DROP */ $$;
-- -> CreateLibrary s.lib1
-- not run: MLE is a component of the Enterprise Edition
CREATE LIBRARY IF NOT EXISTS s2.lib1 COMMENT "x" LANGUAGE JAVASCRIPT AS 'export function f(n) { return n }';
-- -> CreateLibrary s2.lib1
-- not run: MLE is a component of the Enterprise Edition
ALTER LIBRARY lib1 COMMENT "y";
-- -> AlterLibrary s.lib1
-- not run: MLE is a component of the Enterprise Edition
DROP LIBRARY IF EXISTS s2.lib1;
-- -> DropLibrary s2.lib1
ALTER PROCEDURE p1 COMMENT 'x' SQL SECURITY INVOKER;
-- -> AlterProcedure s.p1
ALTER FUNCTION s2.f1 COMMENT 'y';
-- -> AlterFunction s2.f1
DROP PROCEDURE p1;
-- -> DropProcedure s.p1
DROP PROCEDURE IF EXISTS s.`p 2`;
-- -> DropProcedure s.p 2
DROP FUNCTION f1;
-- -> DropFunction s.f1
DROP FUNCTION IF EXISTS s.nosuch;
-- -> DropFunction s.nosuch

-- CREATE TRIGGER, EVENT
CREATE TRIGGER g1 BEFORE INSERT ON t1 FOR EACH ROW SET NEW.a = 1;
-- -> CreateTrigger s.g1
CREATE DEFINER = root@localhost TRIGGER IF NOT EXISTS s.g2 AFTER UPDATE ON s.t1 FOR EACH ROW FOLLOWS g1 SET @a = 1;
-- -> CreateTrigger s.g2
-- not run: g1 fires at another time
CREATE DEFINER=`root`@`localhost` TRIGGER `g 3` BEFORE INSERT ON `t1` FOR EACH ROW PRECEDES g1 BEGIN DELETE FROM t2; END;
-- -> CreateTrigger s.g 3
CREATE TRIGGER before AFTER DELETE ON t1 FOR EACH ROW SET @b = 1;
-- -> CreateTrigger s.before
-- not run: before is reserved
DROP TRIGGER g1;
-- -> DropTrigger s.g1
DROP TRIGGER IF EXISTS s.`g 3`;
-- -> DropTrigger s.g 3
CREATE EVENT e1 ON SCHEDULE AT CURRENT_TIMESTAMP + INTERVAL 1 DAY ON COMPLETION PRESERVE DISABLE DO DELETE FROM t1;
-- -> CreateEvent s.e1
CREATE DEFINER = root@localhost EVENT IF NOT EXISTS s2.e2 ON SCHEDULE EVERY 1 HOUR STARTS '2040-01-01' ENDS '2041-01-01' DISABLE ON REPLICA COMMENT 'RENAME TO x' DO BEGIN DROP TABLE x; END;
-- -> CreateEvent s2.e2
ALTER EVENT e1 RENAME TO e1a;
-- -> RenameEvent s.e1 s.e1a
ALTER DEFINER = root@localhost EVENT e1a ON SCHEDULE EVERY 2 HOUR RENAME TO s2.e1b ENABLE COMMENT 'x';
-- -> RenameEvent s.e1a s2.e1b
ALTER EVENT s2.e1b DISABLE;
-- -> AlterEvent s2.e1b
ALTER EVENT s2.e1b DO ALTER TABLE t1 RENAME TO t2;
-- -> AlterEvent s2.e1b
ALTER DEFINER = u@a.event.b EVENT s2.e1b COMMENT 'RENAME TO q';
-- -> AlterEvent s2.e1b
DROP EVENT s2.e1b;
-- -> DropEvent s2.e1b
DROP EVENT IF EXISTS e9;
-- -> DropEvent s.e9

-- The names' quotes and escapes follow the sql_mode.
SET sql_mode = 'ANSI_QUOTES';
CREATE TABLE "q1" ("a""b" INT, c CHAR(20) DEFAULT 'RENAME TO "x"');
-- -> CreateTable s.q1
ALTER TABLE "s"."q1" RENAME "s2"."q""2";
-- -> AlterTable s.q1, RenameTable s.q1 s2.q"2
DROP TABLE "s2"."q""2" /* generated by server */;
-- -> DropTable s2.q"2
CREATE VIEW "my view" AS SELECT 1 AS "one";
-- -> CreateView s.my view
DROP VIEW "my view";
-- -> DropView s.my view
CREATE TABLE "q\" (i INT);
-- -> CreateTable s.q\
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
ALTER TABLE t4 COMMENT 'C:\', RENAME TO t4n;
-- -> AlterTable s.t4, RenameTable s.t4 s.t4n
SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES';
ALTER TABLE "t4n" COMMENT 'C:\', RENAME TO "t4\";
-- -> AlterTable s.t4n, RenameTable s.t4n s.t4\
SET sql_mode = '';
ALTER TABLE `t4\` COMMENT 'C:\', RENAME TO t4n', RENAME TO t4;
-- -> AlterTable s.t4\, RenameTable s.t4\ s.t4
ALTER TABLE t4 COMMENT "it""s 'RENAME TO x'";
-- -> AlterTable s.t4
ALTER TABLE t4 ADD zz CHAR(9) DEFAULT _utf8mb4'RENAME', ADD yy BINARY(2) DEFAULT x'4142', ADD ww CHAR(3) DEFAULT N'abc';
-- -> AlterTable s.t4
SET sql_mode = DEFAULT;

-- Accounts
CREATE USER u1;
-- -> account
CREATE USER IF NOT EXISTS 'u2'@'%' IDENTIFIED BY 'secret', u3@localhost IDENTIFIED WITH caching_sha2_password BY 'secret' REQUIRE SSL PASSWORD EXPIRE COMMENT 'DROP TABLE t1';
-- -> account
CREATE ROLE r1, 'r2'@'%';
-- -> account
ALTER USER u1 IDENTIFIED BY 'secret' REPLACE 'x' RETAIN CURRENT PASSWORD;
-- -> account
-- not run: only for one's own password
ALTER USER IF EXISTS u1 IDENTIFIED BY 'secret', u3@localhost ACCOUNT LOCK;
-- -> account
ALTER USER u1 DEFAULT ROLE NONE;
-- -> account
ALTER USER USER() IDENTIFIED BY 'secret';
-- -> account
-- not run: it would lock us out
RENAME USER u3@localhost TO u4@localhost;
-- -> account
GRANT ALL ON s.* TO u1 WITH GRANT OPTION;
-- -> account
GRANT SELECT (id), INSERT (id, a) ON TABLE s.t1 TO u1, u4@localhost;
-- -> account
GRANT r1 TO u1 WITH ADMIN OPTION;
-- -> account
GRANT PROXY ON u1 TO u4@localhost;
-- -> account
GRANT EXECUTE ON FUNCTION s2.f1 TO u1 AS root@localhost;
-- -> account
-- not run: AS goes with roles
REVOKE IF EXISTS ALL PRIVILEGES, GRANT OPTION FROM u1 IGNORE UNKNOWN USER;
-- -> account
REVOKE r1 FROM u1;
-- -> account
SET PASSWORD FOR u1 = 'secret';
-- -> account
SET PASSWORD = 'secret';
-- -> account
-- not run: it would lock us out
SET DEFAULT ROLE r1 TO u4@localhost;
-- -> account
-- not run: the role is not granted to it
SET DEFAULT ROLE ALL TO u1, u4@localhost;
-- -> account
SET ROLE NONE;
-- -> account
DROP ROLE r1, r2;
-- -> account
DROP USER IF EXISTS u1, 'u2'@'%', u4@localhost;
-- -> account

-- The server
CREATE SERVER srv FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h', DATABASE 'd', PASSWORD 'secret');
-- -> admin
ALTER SERVER srv OPTIONS (USER 'w', PASSWORD 'secret');
-- -> admin
DROP SERVER IF EXISTS srv;
-- -> admin
CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd' FILE_BLOCK_SIZE = 16K ENGINE = InnoDB;
-- -> admin
ALTER TABLESPACE ts RENAME TO ts2;
-- -> admin
DROP TABLESPACE ts2;
-- -> admin
CREATE UNDO TABLESPACE un ADD DATAFILE 'un.ibu';
-- -> admin
ALTER UNDO TABLESPACE un SET INACTIVE;
-- -> admin
DROP UNDO TABLESPACE un;
-- -> admin
-- not run: the server has not purged it yet
CREATE LOGFILE GROUP lg ADD UNDOFILE 'u.dat' ENGINE NDB;
-- -> admin
-- not run: NDB
ALTER LOGFILE GROUP lg ADD UNDOFILE 'v.dat' ENGINE NDB;
-- -> admin
-- not run: NDB
DROP LOGFILE GROUP lg ENGINE NDB;
-- -> admin
-- not run: NDB
CREATE SPATIAL REFERENCE SYSTEM IF NOT EXISTS 4120000 NAME 'x' DEFINITION 'GEOGCS["x",DATUM["x",SPHEROID["x",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.017453292519943278],AXIS["Lat",NORTH],AXIS["Lon",EAST]]';
-- -> admin
CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 4120000 NAME 'y' DEFINITION 'GEOGCS["x",DATUM["x",SPHEROID["x",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.017453292519943278],AXIS["Lat",NORTH],AXIS["Lon",EAST]]';
-- -> admin
DROP SPATIAL REFERENCE SYSTEM IF EXISTS 4120000;
-- -> admin
CREATE RESOURCE GROUP rg TYPE = USER;
-- -> admin
ALTER RESOURCE GROUP rg DISABLE;
-- -> admin
DROP RESOURCE GROUP rg;
-- -> admin
ALTER INSTANCE ROTATE INNODB MASTER KEY;
-- -> admin
-- not run: needs a keyring
ALTER INSTANCE RELOAD TLS;
-- -> admin
-- not run: needs certificates
ALTER INSTANCE ENABLE INNODB REDO_LOG;
-- -> admin
ANALYZE TABLE t1, t2;
-- -> MaintainTable s.t1, MaintainTable s.t2
ANALYZE NO_WRITE_TO_BINLOG TABLE t1 UPDATE HISTOGRAM ON a WITH 4 BUCKETS;
-- -> MaintainTable s.t1
OPTIMIZE LOCAL TABLE t1;
-- -> MaintainTable s.t1
OPTIMIZE TABLE t1;
-- -> MaintainTable s.t1
REPAIR TABLE t33 QUICK;
-- -> MaintainTable s.t33
CHECK TABLE t1 FOR UPGRADE;
-- -> admin
CHECKSUM TABLE t1 EXTENDED;
-- -> admin
FLUSH TABLES;
-- -> admin
FLUSH PRIVILEGES;
-- -> admin
FLUSH NO_WRITE_TO_BINLOG STATUS;
-- -> admin
INSTALL PLUGIN x SONAME 'x.so';
-- -> admin
-- not run: there is no such plugin
UNINSTALL PLUGIN x;
-- -> admin
-- not run: there is no such plugin
INSTALL COMPONENT 'file://component_x';
-- -> admin
-- not run: there is no such component
UNINSTALL COMPONENT 'file://component_x';
-- -> admin
-- not run: there is no such component
CACHE INDEX t33 IN DEFAULT;
-- -> admin
RESET BINARY LOGS AND GTIDS;
-- -> admin
-- not run: it would take the log away

-- Statements that a server logs never. If one came all the same, the stream would stop.
CLONE LOCAL DATA DIRECTORY = '/x';
-- -> unknown
-- not run: needs its plugin
SHUTDOWN;
-- -> unknown
-- not run: it would end the server
RESTART;
-- -> unknown
-- not run: it would end the server
KILL 12345678;
-- -> unknown
-- not run: there is no such connection
PURGE BINARY LOGS BEFORE '2000-01-01';
-- -> unknown
CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'h', SOURCE_PASSWORD = 'secret' FOR CHANNEL 'c';
-- -> unknown
-- not run: it would leave a channel
CHANGE REPLICATION FILTER REPLICATE_DO_DB = (s);
-- -> unknown
-- not run: it would leave a filter
START REPLICA FOR CHANNEL 'c' PASSWORD = 'secret';
-- -> unknown
-- not run: there is no source
STOP REPLICA;
-- -> unknown
-- not run: there is no source
START GROUP_REPLICATION USER = 'u', PASSWORD = 'secret';
-- -> unknown
-- not run: needs its plugin
LOCK INSTANCE FOR BACKUP;
-- -> unknown
UNLOCK INSTANCE;
-- -> unknown
LOCK TABLES t1 READ;
-- -> unknown
UNLOCK TABLES;
-- -> unknown
LOAD INDEX INTO CACHE t33;
-- -> dml
IMPORT TABLE FROM '/x/*.sdi';
-- -> unknown
-- not run: there is no such file

-- Transactions, and changes that a leader with row format logs as rows
START TRANSACTION;
-- -> begin
SAVEPOINT `a b`;
-- -> savepoint
ROLLBACK TO SAVEPOINT `a b`;
-- -> rollback to
ROLLBACK WORK TO `a b`;
-- -> rollback to
RELEASE SAVEPOINT `a b`;
-- -> savepoint
ROLLBACK;
-- -> rollback
BEGIN WORK;
-- -> begin
COMMIT WORK;
-- -> commit
XA START 'x', 'y', 1;
-- -> xa
XA END 'x', 'y', 1;
-- -> xa
XA ROLLBACK 'x', 'y', 1;
-- -> xa
INSERT INTO t1 (id, e) VALUES (1, 1);
-- -> dml
WITH q AS (SELECT 1 AS a) UPDATE t1, q SET t1.a = q.a;
-- -> dml
REPLACE t1 (id, e) VALUES (1, 1);
-- -> dml
DELETE FROM t1;
-- -> dml
LOAD DATA INFILE '/x' INTO TABLE t1;
-- -> dml
-- not run: there is no such file
CALL s2.p1(1, @x);
-- -> dml
DO 1;
-- -> dml

-- DROP DATABASE
DROP DATABASE `od``d "na-me.x`;
-- -> DropDatabase od`d "na-me.x
DROP SCHEMA IF EXISTS `数据`;
-- -> DropDatabase 数据
DROP DATABASE IF EXISTS nosuch;
-- -> DropDatabase nosuch
DROP DATABASE 1st;
-- -> DropDatabase 1st
DROP DATABASE if_not_exists;
-- -> DropDatabase if_not_exists
DROP TABLE t3;
-- -> DropTable s.t3
DROP DATABASE s2;
-- -> DropDatabase s2
DROP DATABASE s;
-- -> DropDatabase s
