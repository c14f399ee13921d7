"""A rank that hangs: found, reported with its stacks, and ended so that torchrun can start it again.

Each rank writes its heartbeat into a small mapped file. One watcher a machine, a process of its own without
torch, reads these: a rank that holds the GIL, sleeps in the driver or was stopped cannot keep it from looking.
"""
