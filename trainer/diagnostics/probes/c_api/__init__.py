"""ROCm's C interfaces, called without torch."""
