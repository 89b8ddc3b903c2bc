INSERT INTO customer (name, mail) VALUES ('Ada', 'ada@example.org'), ('Grüße', NULL), ('O''Neill; the third', 'o@example.org');
INSERT INTO ordr (id, customer_id, placed, total) VALUES (1, 1, '2024-01-01', 9.99);
