"""Reads the topics of leader and follower as DataFrames of records."""
