"""Gives access to the folders that a program keeps, on this machine or on a file system that Hadoop reaches."""
