"""How the ranks' gradients meet: the transports, a time-boxed trial of each, and the sums themselves.

RCCL can hang for ever or abort on machines where each card alone is fine (ROCm/ROCm#6074, ROCm/rccl#1129). So
a transport is used only after it has added numbers correctly in processes that may be killed.
"""
