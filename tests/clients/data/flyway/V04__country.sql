ALTER TABLE customer ADD COLUMN country CHAR(2) NOT NULL DEFAULT 'DE' AFTER name, ADD KEY (country);
UPDATE customer SET country = 'IE' WHERE name LIKE 'O''%';
