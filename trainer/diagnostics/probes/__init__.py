"""Smoke probes: small programs that each prove one thing about the card, the libraries and torch.

One probe a file, each run in a process of its own with a time limit, one JSON line out as its verdict.
The same code runs on ROCm, on CUDA and on the CPU. `trainer.diagnostics.probes.runner` starts them.
"""
