"""Folds the changes of both servers to rows and compares these: drift and its causes."""
