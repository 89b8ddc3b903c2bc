DROP VIEW IF EXISTS totals, no_such_view;
DROP TABLE customer_before, made_by_text;
DROP PROCEDURE discount;
TRUNCATE TABLE item;
ALTER TABLE orders DROP FOREIGN KEY of_customer, DROP KEY of_customer;
ALTER TABLE orders CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
