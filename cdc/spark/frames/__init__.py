"""Reads a leader's topics as tables: typed DataFrames of the changes of rows, and of a table as of any moment of its
history."""
