"""The profile and what its keys mean: filters, renames, topic names, the start position."""
