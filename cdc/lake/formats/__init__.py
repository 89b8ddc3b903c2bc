"""Implements the formats of a lake's tables: each writes a table in one commit, with the note as metadata, and finds
the newest note.
"""
