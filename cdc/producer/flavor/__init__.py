"""Handles the differences between MySQL and MariaDB leaders: settings, positions, events and types."""
