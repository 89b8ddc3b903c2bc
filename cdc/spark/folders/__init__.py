"""Folders that a program keeps: on this machine, or behind an address that Hadoop's FileSystem knows."""
