"""What of the records counts: the number of the newest, and the probes that a suite must have passed."""
