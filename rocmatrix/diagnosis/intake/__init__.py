"""Logs to diagnose: those of a folder, oldest first, and a file that still grows, is rotated or cut."""
