"""The machine of a log: what the log states of it, what doctor found there, and whether AMD lists hold its card."""
