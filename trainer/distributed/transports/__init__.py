"""Transports of gradients between ranks, a time-boxed trial of each, and the reductions themselves.

RCCL can hang for ever or abort on machines where each card alone is fine (ROCm/ROCm#6074, ROCm/rccl#1129). So
a transport is used only after it has added numbers correctly in processes that may be killed.
"""
