"""Basis of all rooms: errors and their codes, console output, and paths."""
