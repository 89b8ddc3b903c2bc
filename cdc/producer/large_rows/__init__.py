"""Reads rows that are too large for memory from the event on disk, and writes them as JSON text block by block."""
