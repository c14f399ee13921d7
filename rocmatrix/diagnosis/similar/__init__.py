"""Known failures that a log is like, with the cause that each was settled by; likeness proves nothing."""
