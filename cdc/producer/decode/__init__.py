"""Decodes raw events into changes: rows, statements and the ends of transactions."""
