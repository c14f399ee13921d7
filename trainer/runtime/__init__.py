"""What every room relies on: errors and their codes, events, signals, child processes with limits, paths."""
