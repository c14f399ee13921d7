"""The ranks that probes of two cards start, and how their results are judged."""
