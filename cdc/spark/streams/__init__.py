"""What each topic holds by itself: contents, transactions, the watermark, integrity."""
