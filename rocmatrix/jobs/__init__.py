"""Jobs: made ready, run here, or sent to a scheduler."""
