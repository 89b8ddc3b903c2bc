ALTER TABLE orders ADD CONSTRAINT of_customer FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE CASCADE;
DELETE FROM customer WHERE id = 2;
