"""Files of bars, read in chunks."""
