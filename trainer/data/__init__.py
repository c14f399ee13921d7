"""Data files read to arrays for training, split and scaled; numpy alone."""
