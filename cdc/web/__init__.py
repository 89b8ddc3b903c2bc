"""Serves the page of ``cdc-web``: the path from the leader to its followers, live, and a browser of topics.

It writes nothing to any server.
"""
