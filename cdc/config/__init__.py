"""The profile and what its keys say: filters, renames, topic names, where to start."""
