"""Paths as a person types them, and files opened without waiting for a pipe's writer."""
