"""Checkpoints of which each rank writes its part, read by any number of ranks."""
