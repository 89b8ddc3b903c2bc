CREATE TABLE item LIKE orders;
ALTER TABLE item DROP COLUMN placed, ADD COLUMN notes JSON, ADD COLUMN net DECIMAL(12,4) AS (amount * 0.5) STORED;
INSERT INTO item (customer_id, amount, notes) SELECT customer_id, amount, JSON_OBJECT('from', id) FROM orders;
