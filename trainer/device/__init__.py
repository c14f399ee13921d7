"""The accelerator: which and why, its architecture, number format and self-test, memory, random number generators."""
