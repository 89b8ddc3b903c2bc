-- What an ALTER TABLE makes of the rows of which nothing is logged, where that is certain; the table before it is
-- t (id INT, n SMALLINT, t VARCHAR(10), e ENUM('a','b'), d DECIMAL(10,2), f FLOAT), in utf8mb4.
-- `-- -> ` has the columns after it: `c = …` is a value for all rows, `c from n` the former n, `n (…)` says when it is not
-- certain, `c?` is in doubt.

-- What is certain.
ALTER TABLE t ADD c INT;
-- -> id, n, t, e, d, f, c = Null
ALTER TABLE t ADD c INT UNIQUE;
-- -> id, n, t, e, d, f, c = Null
ALTER TABLE t MODIFY n INT NOT NULL UNIQUE;
-- -> id, n (it became NOT NULL), t, e, d, f
ALTER TABLE t ADD c INT NOT NULL;
-- -> id, n, t, e, d, f, c = {"SignedInteger":0}
ALTER TABLE t ADD COLUMN (c INT DEFAULT -3, x INT);
-- -> id, n, t, e, d, f, c = {"SignedInteger":-3}, x = Null
ALTER TABLE t ADD c BIGINT UNSIGNED DEFAULT 18446744073709551615;
-- -> id, n, t, e, d, f, c = {"UnsignedInteger":18446744073709551615}
ALTER TABLE t ADD c DECIMAL(5,2) DEFAULT 1.5;
-- -> id, n, t, e, d, f, c = {"Decimal":"1.50"}
ALTER TABLE t ADD c CHAR(3) DEFAULT 'a ';
-- -> id, n, t, e, d, f, c = {"String":"a"}
ALTER TABLE t ADD c VARCHAR(39) CHARACTER SET ascii COLLATE ascii_general_ci DEFAULT '::1';
-- -> id, n, t, e, d, f, c = {"String":"::1"}
ALTER TABLE t ADD c ENUM('x','y') NOT NULL;
-- -> id, n, t, e, d, f, c = {"Enum":"x"}
ALTER TABLE t ADD c BIT(3) NOT NULL DEFAULT b'101';
-- -> id, n, t, e, d, f, c = {"Bit":5}
ALTER TABLE t ADD c DOUBLE DEFAULT -.5;
-- -> id, n, t, e, d, f, c = {"Double":-0.5}
ALTER TABLE t ADD c BIT DEFAULT 1;
-- -> id, n, t, e, d, f, c = {"Bit":1}
ALTER TABLE t ADD c DATE DEFAULT '2026-01-02';
-- -> id, n, t, e, d, f, c = {"Date":{"year":2026,"month":1,"day":2}}
ALTER TABLE t RENAME COLUMN n TO c;
-- -> id, c from n, t, e, d, f
ALTER TABLE t CHANGE n c BIGINT FIRST;
-- -> c from n, id, t, e, d, f
ALTER TABLE t MODIFY t TEXT;
-- -> id, n, t, e, d, f
ALTER TABLE t MODIFY e ENUM('a','b','c');
-- -> id, n, t, e, d, f
ALTER TABLE t MODIFY d DECIMAL(12,2);
-- -> id, n, t, e, d, f
ALTER TABLE t MODIFY n INT NOT NULL;
-- -> id, n (it became NOT NULL), t, e, d, f

-- What is in doubt.
ALTER TABLE t ADD c INT DEFAULT (1 + 1);
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c DATETIME DEFAULT NOW();
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c INT AUTO_INCREMENT;
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c INT AS (n + 1) STORED;
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'é';
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c DECIMAL(5,1) DEFAULT 1.25;
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c INT DEFAULT x'10';
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c BIT DEFAULT b'11';
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c DOUBLE DEFAULT 1.5e-5 NOT NULL;
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'a' 'b' COMMENT 'x';
-- -> id, n, t, e, d, f, c?
ALTER TABLE t ADD c VARCHAR(9) DEFAULT _latin1 'a' NOT NULL;
-- -> id, n, t, e, d, f, c?
ALTER TABLE t MODIFY n TINYINT;
-- -> id, n?, t, e, d, f
ALTER TABLE t MODIFY n SMALLINT UNSIGNED;
-- -> id, n?, t, e, d, f
ALTER TABLE t MODIFY t VARCHAR(9);
-- -> id, n, t?, e, d, f
ALTER TABLE t MODIFY t VARBINARY(99);
-- -> id, n, t?, e, d, f
ALTER TABLE t MODIFY e ENUM('b','a');
-- -> id, n, t, e?, d, f
ALTER TABLE t MODIFY d DECIMAL(12,3);
-- -> id, n, t, e, d?, f
ALTER TABLE t MODIFY f DOUBLE;
-- -> id, n, t, e, d, f?
ALTER TABLE t MODIFY n VARCHAR(20);
-- -> id, n?, t, e, d, f
ALTER TABLE t CONVERT TO CHARACTER SET latin1;
-- -> id, n, t?, e?, d, f
ALTER TABLE t MODIFY t VARCHAR(20) CHARACTER SET latin1;
-- -> id, n, t?, e, d, f
ALTER TABLE t MODIFY e ENUM('a','b','B');
-- -> id, n, t, e?, d, f

-- Columns are in the order that the statement gives them.
ALTER TABLE t DROP n, ADD a INT FIRST, ADD b INT AFTER id, MODIFY f FLOAT AFTER t;
-- -> a = Null, id, b = Null, t, f, e, d

-- What is not understood.
ALTER TABLE t DISCARD TABLESPACE;
-- -> in doubt
ALTER TABLE t DROP nowhere;
-- -> in doubt
ALTER TABLE t ENGINE = BLACKHOLE;
-- -> in doubt

-- Which rows are left is in doubt, but no column; partitions that are reorganized keep their rows.
ALTER TABLE t DROP PARTITION p0, p1;
-- -> rows in doubt; id, n, t, e, d, f
ALTER TABLE t TRUNCATE PARTITION p0, p1;
-- -> rows in doubt; id, n, t, e, d, f
ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x;
-- -> rows in doubt; id, n, t, e, d, f
ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION q VALUES LESS THAN (9), PARTITION r VALUES LESS THAN (MAXVALUE));
-- -> id, n, t, e, d, f
