-- Which words of CREATE TABLE and ALTER TABLE are options: `-- -> ` has the ENGINE and TABLESPACE that stand where the
-- grammar has options, with their values.

CREATE TABLE t (i INT) ENGINE=MyISAM;
-- -> ENGINE MyISAM
create table if not exists `d`.t (i INT) engine 'MyISAM' comment='x';
-- -> ENGINE 'MyISAM'
CREATE TABLE t (i INT) COMMENT='ENGINE=a', TABLESPACE `a b`, ENGINE = c;
-- -> TABLESPACE `a b`, ENGINE c
CREATE TABLE t (i INT) /*!50100 TABLESPACE `ts` */ ENGINE=InnoDB;
-- -> TABLESPACE `ts`, ENGINE InnoDB
CREATE TABLE t (i INT) DEFAULT CHARACTER SET = latin1 DEFAULT COLLATE x UNION=(a, b) ENGINE=c;
-- -> ENGINE c
CREATE TABLE t (i INT) TABLESPACE a STORAGE DISK ENGINE b START TRANSACTION;
-- -> TABLESPACE a, ENGINE b
CREATE TABLE t (engine INT, tablespace INT, KEY tablespace (engine));
-- -> none
CREATE TABLE engine (i INT);
-- -> none
CREATE TABLE tablespace.engine (i INT) ENGINE=a;
-- -> ENGINE a
CREATE TABLE t LIKE engine;
-- -> none
CREATE TABLE t (LIKE engine);
-- -> none
CREATE TABLE t (i INT COMMENT 'x' DEFAULT (1), j INT AS (i + 1)) ENGINE=a;
-- -> ENGINE a
CREATE TABLE t (i INT) ENGINE=a PARTITION BY RANGE (i) SUBPARTITION BY HASH (i) (
               PARTITION p VALUES LESS THAN (f(1)) STORAGE ENGINE = b TABLESPACE x (SUBPARTITION s TABLESPACE = y,
               SUBPARTITION engine ENGINE c), PARTITION `tablespace` VALUES LESS THAN MAXVALUE TABLESPACE z);
-- -> ENGINE a, ENGINE b, TABLESPACE x, TABLESPACE y, ENGINE c, TABLESPACE z
CREATE TABLE t (i INT) PARTITION BY LIST (i) (PARTITION p VALUES IN (1, (2)) ENGINE=a);
-- -> ENGINE a
ALTER TABLE t TABLESPACE ts;
-- -> TABLESPACE ts
ALTER TABLE t ADD COLUMN a INT, TABLESPACE=ts ENGINE=a, ALGORITHM=COPY;
-- -> TABLESPACE ts, ENGINE a
ALTER TABLE t ADD (engine INT, tablespace INT), ENGINE=a;
-- -> ENGINE a
ALTER TABLE t ADD tablespace INT, DROP engine, CHANGE engine tablespace INT, RENAME INDEX engine TO b;
-- -> none
ALTER TABLE t RENAME COLUMN tablespace TO engine, RENAME TO tablespace;
-- -> none
ALTER TABLE t ADD a INT AFTER engine, ALTER tablespace SET DEFAULT 1, DROP PRIMARY KEY;
-- -> none
ALTER TABLE t ENGINE=a, ORDER BY i, tablespace, engine DESC;
-- -> ENGINE a
ALTER TABLE t REORGANIZE PARTITION p, engine INTO (PARTITION q VALUES IN (1) ENGINE a);
-- -> ENGINE a
ALTER TABLE t DROP PARTITION p, engine;
-- -> none
ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (5) TABLESPACE ts);
-- -> TABLESPACE ts
ALTER TABLE tablespace ENGINE=a REMOVE PARTITIONING;
-- -> ENGINE a
ALTER TABLE t ENGINE=a PARTITION BY HASH (engine) PARTITIONS 4;
-- -> ENGINE a
ALTER DATABASE d ENGINE=a;
-- -> none
CREATE INDEX engine ON t (i);
-- -> none
DROP TABLE engine;
-- -> none
