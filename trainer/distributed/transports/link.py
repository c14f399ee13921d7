"""Bandwidth and latency of a link, and the gradient bucket size that suits it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

MIB = 1 << 20
SMALLEST, LARGEST = MIB, 256 * MIB
UNMEASURED = 25 * MIB  # torch's own default for DistributedDataParallel
WORTH = 10.0  # a bucket should travel this many times longer than it takes to get going


@dataclass(frozen=True, kw_only=True)
class Link:
    """An all-reduce as measured: seconds for next to nothing, and bus bandwidth in bytes/s for a large tensor.

    Bus bandwidth is bytes / seconds * 2 (n - 1) / n, as nccl-tests define it: what each link carries.
    """

    latency_s: float
    bus_bytes_per_s: float

    def as_dict(self) -> dict[str, float]:
        """Return the two figures in JSON's types."""
        return asdict(self)


def measured(*, ranks: int, small_s: float, large_bytes: int, large_s: float) -> Link:
    """Return the link behind the times of a small and of a large all-reduce.

    Args:
        ranks: number of ranks that took part.
        small_s: seconds of the small all-reduce.
        large_bytes: size of the large one in bytes.
        large_s: seconds of the large one.
    """
    factor = 2 * (ranks - 1) / ranks
    return Link(latency_s=small_s, bus_bytes_per_s=factor * large_bytes / max(large_s, 1e-9))


def bucket_bytes(link: Link | None) -> int:
    """Return the bytes of gradients to send at once: small enough to overlap, large enough to be worth the start.

    A power of two in bytes between SMALLEST and LARGEST, the least that takes WORTH times the latency.
    """
    if link is None:
        return UNMEASURED
    worth = WORTH * link.latency_s * link.bus_bytes_per_s
    return min(LARGEST, max(SMALLEST, 1 << (int(worth) - 1).bit_length()))
