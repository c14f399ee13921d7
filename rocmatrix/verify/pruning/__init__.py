"""Prune an image's kernel libraries while it is built: runs inside it, with the standard library alone."""
