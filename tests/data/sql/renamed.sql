-- Statements on a follower that calls databases otherwise: shop is shop_copy there, `a b` is b`c, and ? is beyond.
-- `-- -> ` says what is executed where the text proves which names are databases, or that the statement is refused.
-- The session's database is shop; `-- sql_mode: …` is its mode from there on.

CREATE TABLE t (shop INT);
-- -> CREATE TABLE t (shop INT)
CREATE TABLE shop (i INT);
-- -> CREATE TABLE shop (i INT)
CREATE TABLE shop.shop (i INT);
-- -> CREATE TABLE `shop_copy`.shop (i INT)
CREATE TABLE t LIKE `shop` . `x`;
-- -> CREATE TABLE t LIKE `shop_copy` . `x`
create table t (i int /* shop.x */ comment 'shop.x');
-- -> create table t (i int /* shop.x */ comment 'shop.x')
CREATE TABLE shop.t (i INT, FOREIGN KEY (i) REFERENCES shop.p (i));
-- -> CREATE TABLE `shop_copy`.t (i INT, FOREIGN KEY (i) REFERENCES `shop_copy`.p (i))
CREATE TABLE `a b`.t (i INT);
-- -> CREATE TABLE `b``c`.t (i INT)
RENAME TABLE shop.shop TO shop.x, other.shop TO `a b`.shop;
-- -> RENAME TABLE `shop_copy`.shop TO `shop_copy`.x, other.shop TO `b``c`.shop
DROP TABLE shop.shop, t;
-- -> DROP TABLE `shop_copy`.shop, t
DROP TABLE `🐹`.t;
-- -> DROP TABLE `beyond`.t
DROP VIEW shop.v, shop.shop;
-- -> DROP VIEW `shop_copy`.v, `shop_copy`.shop
ALTER TABLE shop.t RENAME TO shop.u;
-- -> ALTER TABLE `shop_copy`.t RENAME TO `shop_copy`.u
ALTER TABLE shop.shop ADD shop INT;
-- -> ALTER TABLE `shop_copy`.shop ADD shop INT
CREATE INDEX shop ON shop.t (i);
-- -> CREATE INDEX shop ON `shop_copy`.t (i)
CREATE DEFINER=`shop`@`%` VIEW v AS SELECT shop.t.i, shop.f(1) FROM shop.t;
-- -> CREATE DEFINER=`shop`@`%` VIEW v AS SELECT `shop_copy`.t.i, `shop_copy`.f(1) FROM `shop_copy`.t
CREATE DATABASE shop;
-- -> CREATE DATABASE `shop_copy`
DROP DATABASE IF EXISTS `shop`;
-- -> DROP DATABASE IF EXISTS `shop_copy`
ALTER DATABASE CHARACTER SET latin1;
-- -> ALTER DATABASE CHARACTER SET latin1
CREATE PROCEDURE shop.p() DELETE FROM t;
-- -> CREATE PROCEDURE `shop_copy`.p() DELETE FROM t
CREATE VIEW v AS SELECT shop.i FROM shop;
-- -> refused
CREATE VIEW v AS SELECT shop.i FROM shop.shop;
-- -> refused
CREATE VIEW v AS SELECT shop.i FROM t AS shop;
-- -> refused
CREATE VIEW v AS SELECT 1 FROM information_schema.tables WHERE table_schema = 'shop';
-- -> refused
CREATE TABLE shop.shop (i INT, CHECK (shop.i > 0));
-- -> refused
ALTER TABLE shop ORDER BY shop.i;
-- -> refused
CREATE PROCEDURE p() BEGIN PREPARE s FROM @a; EXECUTE s; END;
-- -> refused
CREATE PROCEDURE p() BEGIN DECLARE shop INT; DELETE FROM shop.t; END;
-- -> refused
-- sql_mode: ANSI_QUOTES
CREATE TABLE "shop"."t" (i INT);
-- -> CREATE TABLE `shop_copy`."t" (i INT)
-- sql_mode:
-- A table that has the name of the database, of another database.
CREATE VIEW v AS SELECT x.shop.i FROM x.shop;
-- -> CREATE VIEW v AS SELECT x.shop.i FROM x.shop
