"""Finds a rank that no longer moves, says where it stands, and ends it so that torchrun can start it again.

Each rank writes its heartbeat into a small mapped file. One watcher a machine, a process of its own without
torch, reads these: a rank that holds the GIL, sleeps in the driver or was stopped cannot keep it from looking.
"""
