"""Writes the outcome of an audit as JSON, as sentences and as lines for a terminal."""
