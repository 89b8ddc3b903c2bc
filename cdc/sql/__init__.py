"""Reads the text of SQL statements: their kind, the objects that they affect, and the part of the text that may be
logged.
"""
