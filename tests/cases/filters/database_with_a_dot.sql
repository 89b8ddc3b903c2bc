-- A database with a dot in its name, beside one that looks alike in a filter.
-- @profile producer filters.include_tables = ["`dot.ted`.or*"]
-- @differs dot.ted dot
CREATE DATABASE `dot.ted`;
-- -> {"uri":"flv://mysql-srv1/dot.ted","affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/dot.ted"}]}
CREATE DATABASE dot;
USE `dot.ted`;
CREATE TABLE orders (i INT);
-- -> {"uri":"flv://mysql-srv1/dot.ted","affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/dot.ted/orders"}]}
INSERT INTO orders VALUES (1);
-- -> {"uri":"flv://mysql-srv1/dot.ted/orders","operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
CREATE TABLE other (i INT);
CREATE TABLE dot.`ted.orders` (i INT);
-- @apply
-- @follower
SELECT * FROM `dot.ted`.orders;
-- = [1]
SHOW TABLES FROM `dot.ted`;
-- = ["orders"]
SHOW DATABASES LIKE 'dot';
-- = nothing
