"""Runs in a browser: a server on loopback that shows runs, and nothing else of the machine.

Every address starts with a random token. Runs are named by ids, never by paths; whatever is asked for is looked up in
tables made before, so that no request reaches the file system with a path of its own.
"""
