"""Checks and measurements of this machine: probes and benchmarks."""
