"""Smaller versions of a trained model, and their cost in quality."""
