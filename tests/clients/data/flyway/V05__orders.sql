RENAME TABLE ordr TO orders;
ALTER TABLE orders RENAME COLUMN total TO amount;
