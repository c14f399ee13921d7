"""A hash chain over batches: once two runs differ they never agree again, so the first difference is found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from torch import Tensor

LINK_BYTES = 4  # kept of each step; a later link repeats by chance once in 4 billion, and the head has all 16


@dataclass(kw_only=True)
class HashChain:
    """`head` is the hash of all batches so far, `links` its first four bytes after each step of this epoch."""

    head: bytes = bytes(16)
    links: bytearray = field(default_factory=bytearray)

    def add(self, rows: Tensor) -> None:
        """Take in one batch of row numbers, int64 on the CPU."""
        self.head = hashlib.blake2b(rows.numpy().data, digest_size=16, key=self.head).digest()
        self.links += self.head[:LINK_BYTES]

    def cut(self) -> str:
        """Return the epoch's links as hex and begin the next epoch's."""
        links = self.links.hex()
        self.links = bytearray()
        return links
