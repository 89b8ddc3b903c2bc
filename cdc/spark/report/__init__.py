"""Holds the outcome of an audit, and renders it for a terminal, as a page and as JSON."""
