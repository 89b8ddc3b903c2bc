"""Which part of the stream is applied, and when."""
