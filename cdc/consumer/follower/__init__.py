"""Implements the follower's sessions: connections, locks, table definitions, session variables."""
