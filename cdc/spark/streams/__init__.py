"""Examines each topic by itself: its contents, its transactions, its watermark and its integrity."""
