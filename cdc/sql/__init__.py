"""Reads the text of SQL statements: which kind each is, which objects it affects, what may be shown of it."""
