"""Cards of a job on this machine: those that its shell leaves it, those that it must have, and ranks for them."""
