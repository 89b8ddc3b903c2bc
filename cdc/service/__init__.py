"""Services for every program: logging, signals, retries, health, metrics over HTTP, private files."""
