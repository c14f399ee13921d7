"""Jobs of the trainer: made ready, run, and submitted to schedulers."""
