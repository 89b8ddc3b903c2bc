-- A statement of a record runs on a follower only where its text does what the record claims, and nothing else.
-- `-- -> ` says whether it runs or is refused. Above it stands what holds from there on: what the record claims that it
-- does (action object[ new name], with ` + ` between them), its database or table, its session (database, sql_mode,
-- charset), and its bytes, if they say more than its text.

-- claims: CreateTable d/t
CREATE TABLE t (i INT);
-- -> runs
-- claims: RenameTable e/c e/f + RenameTable d/a d/b
RENAME TABLE a TO b, e.c TO e.f;
-- -> runs
-- claims: DropTable e/b + DropTable d/a
DROP TABLE `a`, e.b;
-- -> runs
-- sql_mode: ANSI_QUOTES
-- claims: CreateTable d/a%20b
CREATE TABLE "a b" (i INT);
-- -> runs
-- sql_mode:
-- charset: latin1
-- claims: CreateTable d/%C3%A4
CREATE TABLE ä (i INT);
-- -> runs
-- charset:
-- claims: CreateTable d/t
CREATE TABLE t (i INT) START TRANSACTION;
-- -> runs
-- charset: gbk
-- claims: CreateTable d/a
CREATE TABLE a /*!50100 (i INT) */;
-- -> runs
-- charset:
-- claims: CreateTable d/a
CREATE TABLE a (i INT /*!90704 , j INT */);
-- -> runs
-- charset: sjis
-- bytes: DROP TABLE \x95\\
-- claims: DropTable d/%E8%A1%A8
DROP TABLE 表;
-- -> runs
-- charset: cp932
-- bytes: DROP TABLE a /* \xff */
-- claims: DropTable d/a
DROP TABLE a /* ? */;
-- -> runs
-- charset: swe7
-- bytes:
-- claims: DropTable d/a
DROP TABLE a;
-- -> runs
-- charset:
-- claims: CreateTable d/a
CREATE TABLE a (i INT COMMENT 'as /*!99999 in */ a text');
-- -> runs
-- record: %3F%3F
-- bytes: DROP DATABASE `\x80\x81`
-- claims: DropDatabase %3F%3F
DROP DATABASE `??`;
-- -> runs
-- record: d
-- bytes:
-- claims: RenameTable d/%3F d/b
RENAME TABLE `🐹` TO b;
-- -> runs
-- claims: DropTable d/🐹
DROP TABLE `🐹`;
-- -> runs
-- claims: CreateTable d/t
GRANT ALL ON *.* TO u;
-- -> refused
-- claims: CreateTable d/t
CREATE USER u;
-- -> refused
-- claims: CreateTable d/t
INSERT INTO t VALUES (1);
-- -> refused
-- claims: CreateTable d/t
SET GLOBAL read_only = 1;
-- -> refused
-- claims: CreateTable d/t
BEGIN;
-- -> refused
-- claims: CreateTable d/t
FLUSH TABLES;
-- -> refused
-- claims: CreateTable d/t
INSTALL PLUGIN p SONAME 'p.so';
-- -> refused
-- claims: CreateFunction d/f
CREATE FUNCTION f RETURNS STRING SONAME 'f.so';
-- -> refused
-- claims: CreateTable d/t
CREATE TEMPORARY TABLE t (i INT);
-- -> refused
-- claims: DropTable d/t
; DROP TABLE t;
-- -> refused
-- bytes: DROP TABLE `\x80`
-- claims: DropTable d/a
DROP TABLE `?`;
-- -> refused
-- bytes:
-- claims: CreateTable d/t
CREATE TABLE t (i INT) CONNECTION='mysql://u:p@h/d/t';
-- -> refused
-- claims: CreateTable d/t
CREATE TABLE t (i INT) SELECT a_function_that_writes();
-- -> refused
-- claims: CreateTable d/t
CREATE TABLE t SELECT * FROM mysql.user;
-- -> refused
-- claims: DropTable d/user
DROP TABLE mysql.user;
-- -> refused
-- claims: DropTable d/t
DROP TABLE t, mysql.user;
-- -> refused
-- claims: CreateTable d/t
DROP TABLE t;
-- -> refused
-- claims: nothing
DROP TABLE t;
-- -> refused
-- claims: DropTable d/t + DropTable d/u
DROP TABLE t;
-- -> refused
-- database: e
-- claims: DropTable d/t
DROP TABLE t;
-- -> refused
-- database: d
-- claims: RenameTable d/t d/t2
RENAME TABLE t TO mysql.t;
-- -> refused
-- claims: AlterTable d/t
ALTER TABLE t RENAME mysql.t;
-- -> refused
-- claims: AlterTable d/t
ALTER TABLE t EXCHANGE PARTITION p WITH TABLE mysql.t;
-- -> refused
-- record: mysql
-- claims: DropTable d/t
DROP TABLE t;
-- -> refused
-- record: d
-- sql_mode: ansi
-- claims: DropTable d/t"
DROP TABLE "t", `"mysql.user"`;
-- -> refused
-- sql_mode: ÀNSI
-- claims: DropTable d/t
DROP TABLE t;
-- -> refused
-- sql_mode:
-- charset: gbk
-- claims: DropTable d/%C3%A4
DROP TABLE ä;
-- -> refused
-- charset: utf8mb4
-- bytes: DROP TABLE \xc3\xb6
-- claims: DropTable d/%C3%A4
DROP TABLE ä;
-- -> refused
-- charset: klingon
-- bytes: DROP TABLE \xe4
-- claims: DropTable d/%C3%A4
DROP TABLE ä;
-- -> refused
-- charset: sjis
-- bytes: DROP TABLE `\xff`
-- claims: DropTable d/%3F
DROP TABLE ?;
-- -> refused
-- claims: DropTable d/%3F
DROP TABLE `?`;
-- -> refused
-- bytes: DROP TABLE a, mysql.user
-- claims: DropTable d/a
DROP TABLE a;
-- -> refused
-- charset: swe7
-- bytes:
-- claims: DropTable d/a%5B
DROP TABLE `a[`;
-- -> refused
-- charset:
-- bytes: CREATE TABLE t (i INT, j INT)
-- claims: CreateTable d/t
CREATE TABLE t (i INT);
-- -> refused
-- charset: latin1
-- bytes:
-- claims: DropTable d/%CE%A9
DROP TABLE Ω;
-- -> refused
-- charset:
-- claims: CreateTable d/t
/*!99999 CREATE TABLE t (i INT) -- */ DROP TABLE mysql.user;
-- -> refused
