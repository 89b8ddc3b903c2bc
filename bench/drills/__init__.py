"""Drills: kill servers and programs under load, and count what was lost or repeated."""
