"""Services for every program: logging, signals, retries, health checks, metrics over HTTP, private files."""
