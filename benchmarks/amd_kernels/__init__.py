"""Compile what Triton has to compile for the trainer, for each AMD architecture, on a machine without a card."""
