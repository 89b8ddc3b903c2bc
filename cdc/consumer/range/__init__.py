"""Limits which part of the stream is applied, and when."""
