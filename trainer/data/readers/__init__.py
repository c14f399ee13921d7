"""Files of bars read in chunks: columns, times, zones, and what is done about each kind of bad row."""
