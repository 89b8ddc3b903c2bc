"""Turns the answers of servers, brokers and programs into the first page: stages, plots, and sentences."""
