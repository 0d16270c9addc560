"""Verbs as a user calls them, and the services that they talk to in CI."""
