"""Reads the profile and interprets its keys: filters, renames, topic names, the start position."""
