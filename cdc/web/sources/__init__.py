"""Queries servers, brokers and programs for the page, each in its own thread."""
