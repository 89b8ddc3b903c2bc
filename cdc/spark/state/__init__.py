"""Saves the results of an audit on disk, so that the next audit reads only newer records."""
