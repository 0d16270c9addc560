"""What everything stands on: errors, units, columns, files."""
