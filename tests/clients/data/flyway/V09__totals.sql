CREATE VIEW totals AS SELECT c.name, SUM(o.amount) AS amount FROM customer c JOIN orders o ON o.customer_id = c.id GROUP BY c.name;
