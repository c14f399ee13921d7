"""Basis of all rooms: errors and their codes, events, signals, child processes with limits, paths."""
