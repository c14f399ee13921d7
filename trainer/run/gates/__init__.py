"""Gates: what a run relies on, tried by values in a child process first, where a fault ends the child alone."""
