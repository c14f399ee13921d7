"""A link of the KFD topology: what joins two nodes, how fast, and what cannot pass over it.

Keys and units: Linux `drivers/gpu/drm/amd/amdkfd/kfd_topology.c`, `iolink_show`; types and flags:
`include/uapi/linux/kfd_sysfs.h`. Bandwidth is in MB/s, and 0 where the kernel does not know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KINDS = {1: "HyperTransport", 2: "PCIe", 3: "AMBA", 4: "MIPI", 5: "QPI", 9: "RapidIO", 10: "InfiniBand", 11: "XGMI"}
ENABLED, NON_COHERENT, NO_ATOMICS_32, NO_ATOMICS_64, NO_PEER_DMA = (1 << bit for bit in range(5))


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of a link between two KFD nodes.

    `weight` is the kernel's distance: 15 for each XGMI hop, 20 for a PCIe hop, added up along the way. `direct` is
    False for a way through another node. Bandwidths are in MB/s, None where the kernel does not report them.
    """

    source: int
    target: int
    kind: str
    weight: int | None
    most_bandwidth: int | None
    flags: int
    direct: bool

    @classmethod
    def parse(cls, properties: Mapping[str, int], *, node: int, direct: bool) -> Link:
        """Return the link behind the keys of a `properties` file of `node`. Needs `node_to`.

        Args:
            properties: keys and values of the `properties` file.
            node: number of the KFD node that the link starts at.
            direct: the link joins both ends without another node.
        """
        number = properties.get("type", 0)
        return cls(
            source=node,
            target=properties["node_to"],
            kind=KINDS.get(number, f"type {number}"),
            weight=properties.get("weight"),
            most_bandwidth=properties.get("max_bandwidth") or None,
            flags=properties.get("flags", 0),
            direct=direct,
        )

    @property
    def xgmi(self) -> bool:
        """Whether it is Infinity Fabric between cards, or between a card and its processor."""
        return self.kind == "XGMI"

    @property
    def atomics(self) -> bool:
        """Whether 32 and 64 bit atomics pass. Valid only for a link that the kernel enabled."""
        return not self.flags & (NO_ATOMICS_32 | NO_ATOMICS_64)

    @property
    def peer_dma(self) -> bool:
        """Whether one card may read the other's memory over it."""
        return not self.flags & NO_PEER_DMA

    @property
    def summary(self) -> str:
        """The link in a few words: "XGMI, weight 15, 50.0 GB/s"."""
        parts = [self.kind]
        parts += [f"weight {self.weight}"] if self.weight is not None else []
        parts += [f"{self.most_bandwidth / 1000:.1f} GB/s"] if self.most_bandwidth else []
        parts += [] if self.direct else ["through another node"]
        parts += [] if self.atomics else ["no atomics"]
        parts += [] if self.peer_dma else ["no peer access"]
        return ", ".join(parts)
