"""Represents records that are too large for memory, for the programs that read them."""
