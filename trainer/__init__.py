"""The trainer of rocmatrix: data, networks, the training loop, probes and benchmarks."""

__version__ = "0.1.0"
