"""Files that rows of tokens come from: their kind, and tables as rows with names."""
