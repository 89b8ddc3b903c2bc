CREATE TABLE customer_before AS SELECT * FROM customer;
SET @last = (SELECT MAX(id) FROM customer);
INSERT INTO customer (name) VALUES (CONCAT('after ', @last));
SET @made = 'CREATE TABLE made_by_text (id INT PRIMARY KEY)';
PREPARE made FROM @made;
EXECUTE made;
DEALLOCATE PREPARE made;
