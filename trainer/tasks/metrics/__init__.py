"""Metrics of regression and classification."""
