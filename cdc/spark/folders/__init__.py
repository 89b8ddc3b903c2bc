"""Accesses folders with a program's files, on this machine or on a file system that Hadoop's API can access."""
