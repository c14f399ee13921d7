"""Figures: each script keeps its raw results as JSON in benchmarks/results/."""
