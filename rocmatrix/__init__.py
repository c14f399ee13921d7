"""The host side of rocmatrix: versions, cards and containers. It never imports torch."""

__version__ = "0.1.0"
