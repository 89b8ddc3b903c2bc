-- Only rows for which a condition is true reach Kafka, those of table copies included; other conditions copy the table.
-- @profile producer filters.include_dbs = ["some_rows"]
-- @profile producer filters.rows = { "some_rows.orders" = "region = 'EU' AND amount >= 10", "some_rows.k*" = "n > 1", "some_rows.none" = "x = 1" }
-- @differs some_rows.orders some_rows.keyless some_rows.former
CREATE DATABASE some_rows;
USE some_rows;
CREATE TABLE orders (id INT PRIMARY KEY, Region VARCHAR(9), amount DECIMAL(6,2), note VARCHAR(20));
CREATE TABLE keyless (n INT, t VARCHAR(9));
INSERT INTO orders VALUES (1, 'EU', 10, 'kept'), (2, 'eu', 99, 'secret'), (3, 'US', 99, 'secret'), (4, 'EU', 9.99, 'secret'), (5, NULL, NULL, 'secret');
UPDATE orders SET amount = amount + 1, note = 'moved';
UPDATE orders SET region = IF(id = 3, 'EU', 'US'), id = id + 10 WHERE id IN (1, 3) ORDER BY id;
UPDATE orders SET note = 'secret' WHERE id = 2;
REPLACE INTO orders VALUES (13, 'EU', 12, 'kept'), (14, 'EU', 12, 'kept'), (14, 'US', 12, 'secret');
INSERT INTO keyless VALUES (1, 'a'), (2, 'b'), (2, 'b'), (NULL, 'c');
UPDATE keyless SET n = n + 1 WHERE t IN ('a', 'c');
DELETE FROM keyless WHERE t = 'b' LIMIT 1;
-- @apply
-- @follower
SELECT id, region, CONCAT(amount), note FROM some_rows.orders ORDER BY id;
-- = [4, "EU", "10.99", "moved"]
-- = [13, "EU", "12.00", "kept"]
SELECT * FROM some_rows.keyless ORDER BY t;
-- = [2, "a"]
-- = [2, "b"]
-- A copy finds nothing that differs.
-- @run cdc-producer --copy some_rows.* --until-current
-- @logged no table is filtered by these globs rows=some_rows.none
-- @run cdc-consumer
-- @logged some_rows/orders rows=2 missing=0 different=0 extra=0
-- @logged some_rows/keyless rows=2
-- Another condition: the table is copied, the other one is not.
-- @profile producer filters.rows = { "some_rows.orders" = "region <> 'EU'", "some_rows.keyless" = "n >= 2" }
-- @run cdc-producer
-- @logged newly_included="some_rows.keyless, some_rows.orders"
-- @silent secret
-- @run cdc-consumer
-- @logged some_rows/orders rows=3 missing=3 different=0 extra=2
-- @follower
SELECT id, region FROM some_rows.orders ORDER BY id;
-- = [2, "eu"]
-- = [11, "US"]
-- = [14, "US"]
-- @leader
USE some_rows;
-- What may change the values of the condition's column needs a copy.
ALTER TABLE orders ADD KEY by_region (region), ADD COLUMN more INT DEFAULT 3;
ALTER TABLE orders MODIFY region VARCHAR(10);
-- @apply
-- @stops cdc-producer 3 it may change values by which filters.rows leaves rows out … on_unrepeatable = "copy"
-- @profile producer producer.on_unrepeatable = "copy"
-- @run cdc-producer
-- @run cdc-consumer
-- @logged some_rows/orders rows=3 missing=0 different=0 extra=0
-- @leader
ALTER TABLE orders RENAME COLUMN region TO area;
INSERT INTO orders VALUES (20, 'US', 1, 'kept', 1), (21, 'EU', 1, 'secret', 1);
-- @run cdc-producer
-- @stops cdc-producer 3 there is no column region
-- @logged cdc-producer does not fit filters.rows any more
-- @silent secret
-- @profile producer filters.rows = { "some_rows.orders" = "area <> 'EU'", "some_rows.keyless" = "n >= 2" }
-- @run cdc-producer --accept-filters
-- @run cdc-producer --copy some_rows.orders --until-current
-- @run cdc-consumer
-- @logged some_rows/orders rows=4
-- @leader
CREATE TABLE made LIKE orders;
-- @run cdc-producer
-- @stops cdc-producer 3 rows of table some_rows.made and table some_rows.orders are left out by different conditions
-- @profile producer filters.rows = { "some_rows.orders" = "area <> 'EU'", "some_rows.made" = "area <> 'EU'", "some_rows.keyless" = "n >= 2" }
-- @run cdc-producer --accept-filters
INSERT INTO made SELECT * FROM orders;
RENAME TABLE orders TO former, made TO orders;
-- @run cdc-producer
-- @stops cdc-producer 3 left out by different conditions
-- @profile producer filters.rows = { "some_rows.orders" = "area <> 'EU'", "some_rows.[mf]*" = "area <> 'EU'", "some_rows.keyless" = "n >= 2" }
-- @run cdc-producer --accept-filters
-- @run cdc-consumer
-- @follower
SELECT id, area FROM some_rows.orders ORDER BY id;
-- = [2, "eu"]
-- = [11, "US"]
-- = [14, "US"]
-- = [20, "US"]
-- @leader
-- What the leader's tables do not fit is refused at the start.
ALTER TABLE orders ADD total FLOAT, ADD twice DECIMAL(8,2) AS (amount * 2);
CREATE TABLE child (o INT, FOREIGN KEY (o) REFERENCES orders (id));
-- @run cdc-producer
-- @logged cdc-producer rows are left out tables="some_rows.former, some_rows.keyless, some_rows.orders"
-- @logged cdc-producer foreign keys refer to tables of which rows are left out … some_rows.child to some_rows.orders
-- @profile producer filters.rows = { "some_rows.orders" = "total > 1" }
-- @run cdc-producer
-- @stops cdc-producer 2 column total is FLOAT, whose values have no exact comparison
-- @profile producer filters.rows = { "some_rows.orders" = "twice > 1" }
-- @run cdc-producer
-- @stops cdc-producer 2 column twice, which is generated
-- @profile producer filters.rows = { "some_rows.orders" = "area <> 'EU'", "some_rows.[mf]*" = "area <> 'EU'", "some_rows.keyless" = "n >= 2" }
-- @run cdc-producer
-- @profile consumer filters.rows = { "some_rows.orders" = "area <> 'EU'" }
-- @run cdc-consumer
-- @stops cdc-consumer 2 a consumer leaves no rows out
-- @profile consumer filters.rows = {}
-- @run cdc-consumer
