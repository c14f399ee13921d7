"""Learning tasks: what is learned from which rows."""
