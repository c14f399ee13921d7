"""The trainer of rocmatrix. It knows tensors; versions, cards and containers are the host program's business."""

__version__ = "0.1.0"
