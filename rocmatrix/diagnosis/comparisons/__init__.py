"""Comparisons of two values that a transcript states: values read by form, and rules that relate them, as data."""
