"""What a run relies on, tried by values in a child process before the run: a fault there ends the child alone."""
