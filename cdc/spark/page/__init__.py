"""Renders the outcome of an audit as one HTML page."""
