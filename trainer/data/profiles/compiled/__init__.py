"""Levels of growing profiles in a loop of C, where a compiler is there; the same whole numbers as numpy, faster."""
