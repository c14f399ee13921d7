"""Benchmarks: how fast a card, its memory, its links and the trainer's own steps are, as medians with their spread.

A benchmark is a probe whose numbers are what counts: a module, a process, a limit and a verdict each, and the same
code on ROCm, CUDA and the CPU. It passes where what it timed was also computed rightly.
"""
