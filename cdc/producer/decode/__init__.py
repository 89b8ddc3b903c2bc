"""Raw events to changes: rows, statements and the ends of transactions."""
