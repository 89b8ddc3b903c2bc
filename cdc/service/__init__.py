"""What every program needs around its work: logging, signals, retries, health, metrics over HTTP."""
