"""STAND-IN of the trainer for the rehearsal: it computes nothing, and plays what a scenario says."""
