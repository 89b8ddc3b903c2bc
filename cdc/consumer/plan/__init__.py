"""Batches of transactions to SQL statements. Pure."""
