"""Folds the changes of both servers to rows, compares the rows, and finds drift and its causes."""
