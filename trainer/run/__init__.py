"""One training, from its settings to its folder."""
