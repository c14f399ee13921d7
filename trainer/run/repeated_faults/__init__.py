"""Repeated faults: a run whose process dies twice at one step resumes with another BLAS, then without torch's cache."""
