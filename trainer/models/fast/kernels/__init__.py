"""The trainer's own Triton kernels; each is imported where it is used, for Triton may not be installed."""
