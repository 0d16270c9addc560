"""Agents: the verbs as tools of the Model Context Protocol, for assistants."""
