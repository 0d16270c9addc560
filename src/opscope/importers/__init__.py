"""What importers of foreign files share."""
