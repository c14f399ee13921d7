"""What every room uses: errors, events, signals, child processes with limits, paths."""
