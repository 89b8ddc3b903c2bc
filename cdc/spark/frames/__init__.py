"""The topics of a leader as tables: typed DataFrames of its changes, and of a table as of any moment of its history."""
