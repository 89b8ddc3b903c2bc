"""Copies the leader's tables into its stream of records, in ranges of their keys, while the leader's clients change
them."""
