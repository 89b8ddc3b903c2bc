"""Copies tables of the leader into its stream of records while changes go on, by ranges of their keys."""
