"""Records that are too large for memory, as their readers hold them."""
