"""What every verb of the command line looks like."""
