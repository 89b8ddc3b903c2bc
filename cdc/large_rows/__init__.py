"""Records that are too large for memory, as whoever reads them has them."""
