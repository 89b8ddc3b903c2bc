"""Writes values of records as SQL literals and conditions. Pure."""
