"""Registry of benchmarks: a name, the module to run, a time limit and what it measures."""

from __future__ import annotations

from trainer.diagnostics.probes.registry import Probe


def _benchmark(name: str, timeout: float, summary: str, *, module: str = "", **more: object) -> Probe:
    """Return a benchmark whose module is `module` of this package; by default the one that has its name."""
    place = f"trainer.diagnostics.bench.{module or name}"
    return Probe(name=name, module=place, summary=summary, timeout_seconds=timeout, **more)  # type: ignore[arg-type]


# Limits leave room for the first use of a card, which loads kernels from disk; what is measured comes on top.
BENCHMARKS: tuple[Probe, ...] = (
    _benchmark("matmul", 120, "TFLOP/s of matrix products in fp32, bf16 and fp16"),
    _benchmark("bandwidth", 60, "GB/s of a copy within the device's memory"),
    _benchmark("host_copy", 60, "GB/s of copies to the card and back, pinned and pageable", may_be_absent=True),
    _benchmark("small_network", 90, "rows/s of training 54-32-16-1 as `train` takes its steps"),
    _benchmark("transformer", 90, "time of a transformer block, forward and backward"),
    _benchmark("all_reduce", 120, "GB/s of a sum over two ranks", cards=2, may_be_absent=True),
    _benchmark(
        "scaling",
        240,
        "rows/s of training on one card and on two, and the efficiency, by network and batch",
        module="cards.scaling",
        cards=2,
        may_be_absent=True,
    ),
    _benchmark(
        "p2p",
        180,
        "GB/s and latency of copies between all pairs of cards, both directions",
        module="cards.card_copy",
        cards=2,
        may_be_absent=True,
    ),
)
