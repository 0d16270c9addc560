"""A plug-in as a stranger writes it: every kind of thing that one can add. docs/plugins.md shows it."""
