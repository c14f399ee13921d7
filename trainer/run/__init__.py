"""One training, from configuration to run folder."""
