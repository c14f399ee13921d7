"""Images: rendered, locked, fetched and built."""
