"""Copies the leader's tables into its stream of records while changes go on, in ranges of their keys."""
