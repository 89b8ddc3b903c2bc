"""Follows statements that define, rename and drop tables and other objects, and decides which of these are for the
follower."""
