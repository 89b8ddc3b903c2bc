"""Implements the formats of lake tables. Each format writes a table in one commit, with the note as metadata, and finds
the newest note of a table.
"""
