"""What bounds the time of a search: fixed texts that a match must hold, and the place of a match in its line."""
