"""Represents records that are too large for memory, for programs that read them."""
