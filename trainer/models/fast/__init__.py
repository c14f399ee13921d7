"""Faster ways to compute what the decoder computes; each is used only after a comparison with fp64."""
