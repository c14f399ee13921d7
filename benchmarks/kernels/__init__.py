"""Triton kernels, the trainer's own and those that Inductor writes for it, compiled for AMD cards without a card."""
