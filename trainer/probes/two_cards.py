"""Why two cards do not work together: the same step by other ways, and what this machine says about itself.

Nothing here changes a verdict. The cause is judged from which ways helped and from facts that are read (the size
of /dev/shm, the IOMMU, cards that are hidden, whether a process can open another one's card memory), never from
words in a log. Sources: ROCm/rccl src/misc/shmutils.cc and src/init.cc, ROCm/ROCm docs/conceptual/iommu.rst and
gpu-isolation.md, ROCm/rccl#1129.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.comms.route import GLOO, HOST, NCCL_NO_P2P, Route
from trainer.probes import card_ipc, numerics, two_ranks
from trainer.probes.ddp_rank import ROUTE, WORLD
from trainer.probes.process import Outcome
from trainer.probes.two_ranks import Place, Report
from trainer.probes.verdict import Check, Device

NCCL_NO_SHM = Route(
    name="nccl-no-shm",
    backend="nccl",
    environment={"NCCL_SHM_DISABLE": "1"},
    why="without shared memory, which is what a container with a small /dev/shm lacks",
)
WAYS = (NCCL_NO_P2P, NCCL_NO_SHM, GLOO, HOST)
SHM_NEEDED = 128 << 20  # bytes; RCCL takes about 9.6 MB a channel and peer, and Docker gives 64 MiB in all
HIDING = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
ROOT = Path("/")

Works = Callable[[Outcome, Sequence[Report]], str]


@dataclass(frozen=True, kw_only=True)
class Try:
    """The step by one way: why it did not work, empty if it did, and its seconds."""

    way: Route
    cause: str
    seconds: float

    @property
    def settings(self) -> str:
        """What to set for it, in words."""
        named = " ".join(f"{name}={value}" for name, value in self.way.environment.items())
        return named or {"gloo": "the gloo backend", "host": "averaging through host memory"}[self.way.name]


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What this machine says: `ipc_error` is empty where another process opened card memory, None if not tried."""

    shm_free: int
    iommu_translates: bool
    cards_seen: int
    cards_here: int
    hiding: Mapping[str, str]
    ipc_error: str | None


def retry(module: str, device: Device, seconds: float, works: Works) -> tuple[Try, ...]:
    """The same step by each of WAYS, each in an equal share of `seconds`."""
    return tuple(one(module, device, way, seconds / len(WAYS), works) for way in WAYS)


def one(module: str, device: Device, way: Route, seconds: float, works: Works) -> Try:
    """The step by one way."""
    outcome, reports = two_ranks.run_ranks(
        module,
        device,
        numerics.fresh_seed(),
        seconds,
        backend=way.backend,
        environment={**way.environment, ROUTE: way.name},
    )
    cause = f"no end within {seconds:.0f} s" if outcome.timed_out else works(outcome, reports)
    return Try(way=way, cause=cause, seconds=round(outcome.seconds, 3))


def as_check(tried: Try) -> Check:
    """A try as a check, for the record: the verdict has failed before."""
    name = f"retry with {tried.settings}"
    status = "fail" if tried.cause else "pass"
    return Check(name=name, status=status, measured=tried.seconds, unit="s", detail=tried.cause)  # type: ignore[arg-type]


def circumstances(place: Place, root: Path = ROOT) -> Circumstances:
    """Read what this machine says about itself."""
    return Circumstances(
        shm_free=free_bytes(root / "dev/shm"),
        iommu_translates=iommu_translates(root),
        cards_seen=place.cards,
        cards_here=cards_here(root),
        hiding={name: os.environ[name] for name in HIDING if name in os.environ},
        ipc_error=card_ipc.error() if place.cards >= WORLD else None,
    )


def diagnose(place: Place, tries: Sequence[Try], facts: Circumstances) -> dict[str, str]:
    """What helped, the likely cause and what speaks for it; empty for two ranks on the CPU with nothing hidden."""
    if place.cards < WORLD:
        return hidden(facts)
    helped = [tried.settings for tried in tries if not tried.cause]
    cause, evidence = likely(tries, facts)
    return {
        "helped": "; ".join(helped) or "none of the ways that were tried",
        "likely cause": cause,
        "evidence": evidence,
    }


def hidden(facts: Circumstances) -> dict[str, str]:
    """Where this machine has more cards than torch sees: what hides them."""
    if facts.cards_here < WORLD or facts.cards_seen >= facts.cards_here:
        return {}
    by = ", ".join(f"{name}={value}" for name, value in facts.hiding.items())
    return {
        "helped": "nothing was tried",
        "likely cause": "a card is hidden",
        "evidence": f"{facts.cards_here} cards on this machine, {facts.cards_seen} seen by torch; "
        + (by or "no variable hides one: the container was not given its device node, or may not open it"),
    }


def likely(tries: Sequence[Try], facts: Circumstances) -> tuple[str, str]:
    """The likely cause and its evidence, from which ways worked."""
    ok = {tried.way.name: not tried.cause for tried in tries}
    shm = f"/dev/shm has {facts.shm_free / 2**20:.0f} MiB free"
    iommu = "translates" if facts.iommu_translates else "passes through or is off"
    direct = "the IOMMU stands between the cards" if facts.iommu_translates else "peer access does not work"
    without_shm = bool(ok.get(NCCL_NO_SHM.name))
    causes = (  # the first that holds
        (bool(facts.ipc_error), "card memory cannot be shared between processes (IPC denied)", str(facts.ipc_error)),
        (bool(ok.get(NCCL_NO_P2P.name)), direct, f"it works without peer access, and the IOMMU {iommu}"),
        (without_shm and facts.shm_free < SHM_NEEDED, "/dev/shm is too small", f"it works without; {shm}"),
        (without_shm, "shared memory between the ranks does not work", f"it works without; {shm}"),
        (facts.shm_free < SHM_NEEDED, "/dev/shm is too small", shm),
        (bool(ok.get(GLOO.name) or ok.get(HOST.name)), "NCCL (RCCL on ROCm) does not work here", "it works over gloo"),
        (True, "not between the cards: no way works", "averaging through host memory fails, too"),
    )
    return next((cause, evidence) for holds, cause, evidence in causes if holds)


def free_bytes(folder: Path) -> int:
    """Free bytes of the file system at `folder`, 0 where there is none."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def iommu_translates(root: Path) -> bool:
    """Whether an IOMMU is on and translates: groups exist whose type is not `identity`."""
    kinds = [text(path) for path in (root / "sys/kernel/iommu_groups").glob("*/type")]
    return any(kind and kind != "identity" for kind in kinds)


def cards_here(root: Path) -> int:
    """Cards of this machine whether torch sees them or not: KFD's nodes with compute units, else NVIDIA's list."""
    nodes = [text(path) for path in (root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties")]
    units = [line.split()[1] for node in nodes for line in node.splitlines() if line.startswith("simd_count ")]
    return sum(unit != "0" for unit in units) or len(list((root / "proc/driver/nvidia/gpus").glob("*")))


def text(path: Path) -> str:
    """What a small file says, stripped; empty where it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
