"""Follows statements that define, rename and drop tables and other objects, and decides which statements and tables are
for the follower."""
