"""Saves on disk what an audit read, so that the next one reads only newer records."""
