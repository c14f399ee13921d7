"""Bounds on the time of a search: fixed texts that a match must contain, and the place of a match in its line."""
