"""A page on a finished run: one file, no script, nothing fetched."""
