-- Which tables a change that was logged as a statement may have changed: `-- -> ` says what the consumer must not trust.
-- `-- databases: …` are those that the binlog lists as changed by the statements below; the session's is cur.

-- databases: percona d
REPLACE INTO `percona`.`checksums` (db, n) SELECT 'd', COUNT(*) FROM `d`.`a` /*checksum*/;
-- -> SkipTable percona.checksums
-- databases: cur
INSERT LOW_PRIORITY IGNORE t VALUES (1, CONCAT('a', RAND()));
-- -> SkipTable cur.t
-- databases: x cur
INSERT INTO x.t SELECT * FROM u;
-- -> SkipTable x.t
-- databases: x d
UPDATE x.t AS a SET c = 1 WHERE i IN (SELECT i FROM d.a);
-- -> SkipTable x.t
-- databases: x
DELETE FROM x.t;
-- -> SkipTable x.t
DELETE QUICK FROM x.t a WHERE i = 1;
-- -> SkipTable x.t
LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE x.t FIELDS TERMINATED BY ',';
-- -> SkipTable x.t
-- databases: x d
INSERT INTO x.t VALUES (1);
-- -> SkipTable x.t, SkipDatabase d
-- databases: x cur
INSERT INTO x.t SELECT i FROM x.u;
-- -> SkipTable x.t, SkipDatabase cur
-- databases: x d
INSERT INTO x.t VALUES (f());
-- -> SkipDatabase x, SkipDatabase d
INSERT INTO x.t VALUES (`COUNT`(1));
-- -> SkipDatabase x, SkipDatabase d
INSERT INTO x.t VALUES (d.log(1));
-- -> SkipDatabase x, SkipDatabase d
INSERT x.t SELECT d.a FROM x.s AS d;
-- -> SkipTable x.t, SkipDatabase d
INSERT x.t SELECT b.a FROM d.s AS b;
-- -> SkipTable x.t
UPDATE x.t JOIN d.a SET t.c = 1;
-- -> SkipDatabase x, SkipDatabase d
UPDATE x.t, d.a SET t.c = 1;
-- -> SkipDatabase x, SkipDatabase d
DELETE t FROM x.t JOIN d.a;
-- -> SkipDatabase x, SkipDatabase d
DELETE FROM x.t USING x.t JOIN d.a;
-- -> SkipDatabase x, SkipDatabase d
-- databases: x
WITH q AS (SELECT 1) DELETE FROM x.t;
-- -> SkipDatabase x
-- databases: d
SELECT `d`.`f`();
-- -> SkipDatabase d
CALL p();
-- -> SkipDatabase d
UPDATE;
-- -> SkipDatabase d
-- databases: x
-- databases:
INSERT INTO x.t VALUES (1);
-- -> SkipDatabase *