"""Rows that are too large for memory: read from the event on disk, written as JSON text block by block."""
