"""Asks servers, brokers and programs for what the page shows, each from a thread of its own."""
