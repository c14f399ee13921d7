"""The transports for tensors between ranks, best first."""

from __future__ import annotations

from dataclasses import dataclass, field

AUTOMATIC = "auto"


@dataclass(frozen=True, kw_only=True)
class Transport:
    """One transport. `backend` is what torch calls it; `on_host` copies tensors through pinned host memory before."""

    name: str
    backend: str
    why: str
    environment: dict[str, str] = field(default_factory=dict)
    on_host: bool = False


NCCL = Transport(name="nccl", backend="nccl", why="card to card; RCCL on ROCm")
NCCL_NO_P2P = Transport(
    name="nccl-no-p2p",
    backend="nccl",
    environment={"NCCL_P2P_DISABLE": "1"},
    why="the same without peer access, which is what hangs on many PCIe machines (ROCm/rccl#1129)",
)
GLOO = Transport(name="gloo", backend="gloo", why="torch's own copies through the host, over sockets")
HOST = Transport(
    name="host", backend="gloo", on_host=True, why="our copies through pinned memory; gloo never sees a device tensor"
)
TRANSPORTS = {transport.name: transport for transport in (NCCL, NCCL_NO_P2P, GLOO, HOST)}


def candidates(device_type: str, requested: str, *, nccl_built: bool) -> list[Transport]:
    """Return the transports to try, in order, for tensors on `device_type` (`cpu` or `cuda`).

    One that was asked for by name is the only one. CPU tensors have gloo; a torch without NCCL skips it.

    Args:
        device_type: "cpu" or "cuda".
        requested: a transport's name, or AUTOMATIC.
        nccl_built: this torch was built with NCCL or RCCL.
    """
    if requested != AUTOMATIC:
        return [TRANSPORTS[requested]]
    if device_type == "cpu":
        return [GLOO]
    return [transport for transport in TRANSPORTS.values() if nccl_built or transport.backend != "nccl"]
