"""Shows runs in a browser, from a server on loopback that exposes nothing else of the machine.

Every address starts with a random token. Runs are identified by ids, never by paths; every request is looked up in
tables built beforehand, so that no part of a request reaches the file system as a path.
"""
