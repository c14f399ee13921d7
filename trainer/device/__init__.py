"""The accelerator: its choice, memory, precision and random numbers."""
