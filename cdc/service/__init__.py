"""What every program needs besides its work: logging, signals, retries, health, metrics over HTTP, private files."""
