"""Reads the text of SQL statements: their kind, the objects that they affect, the part that may be shown."""
