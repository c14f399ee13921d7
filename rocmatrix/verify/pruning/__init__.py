"""Removal of other architectures' kernels within an image while it is built; standard library alone."""
