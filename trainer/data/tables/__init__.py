"""Tables of any columns: cells, encodings, splits."""
