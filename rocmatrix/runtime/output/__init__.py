"""Standard streams opened where they were closed, and files written whole or not at all."""
