"""Metrics of regression and classification, and the simple models that a run is compared with."""
