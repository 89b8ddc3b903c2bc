"""Plans the SQL statements for batches of transactions. Pure."""
