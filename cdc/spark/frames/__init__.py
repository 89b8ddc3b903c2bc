"""Shows a leader's topics as tables: typed DataFrames of its changes, and of a table as of any
moment of its history."""
