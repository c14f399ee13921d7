"""Peak memory and time of a training before it is started: the program itself, run on tensors without data."""
