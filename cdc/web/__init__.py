"""Serves the page of ``cdc-web``: a live view of the path from the leader to its followers, and a topic browser.

It writes nothing to any server.
"""
