"""Both sides folded to rows and compared: drift and its causes."""
