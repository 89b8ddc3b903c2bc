"""Examines each topic by itself: its contents, transactions, watermark and integrity."""
