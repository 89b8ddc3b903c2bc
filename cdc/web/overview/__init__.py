"""Builds the first page from the answers of servers, brokers and programs: stages, plots, and sentences."""
