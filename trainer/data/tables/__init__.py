"""Tables of any columns, in memory or a column at a time: cells, encodings, splits."""
