"""Speeds next to the maker's figure: half of a sound card's fails, and an unknown card is not judged."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trainer.diagnostics.probes.memory import bandwidth
from trainer.diagnostics.probes.verdict import Device
from trainer.telemetry import peaks

XT = Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")
MI300X = Device(kind="rocm", name="AMD Instinct MI300X", arch="gfx942:sramecc+:xnack-")
CPU = Device(kind="cpu", name="EPYC", arch="x86_64")


def failed(device: Device, speeds: dict[str, float], units: int = 0) -> list[str]:
    found = bandwidth.checks(device, {"read": 1e5, "write": 1e5, "copy": 1e5} | speeds, units)
    return [check.name for check in found if check.status == "fail"]


@pytest.mark.parametrize(("kind", "limit"), [("read", 320.0), ("write", 400.0), ("copy", 400.0)])
def test_speed_just_within_the_limit_passes_and_just_beyond_fails(kind: str, limit: float) -> None:
    assert failed(XT, {kind: limit}) == []
    assert failed(XT, {kind: limit * 0.999}) == [f"{kind} bandwidth"]


@pytest.mark.parametrize("share", [0.75, 0.8, 0.9, 0.95])
def test_card_at_half_of_a_sound_ones_bandwidth_fails(share: float) -> None:
    sound = dict.fromkeys(("read", "write", "copy"), share * 800)
    assert failed(XT, sound) == []
    halved = failed(XT, {kind: speed / 2 for kind, speed in sound.items()})
    assert {"write bandwidth", "copy bandwidth"} <= set(halved)


def test_unknown_card_and_cpu_have_their_figures_only() -> None:
    for device in (CPU, Device(kind="rocm", name="AMD Radeon Graphics", arch="gfx1036")):
        (check,) = bandwidth.checks(device, {"read": 1.0, "write": 1.0, "copy": 1.0})
        assert check.status == "not-applicable"
    assert [number.value for number in bandwidth.numbers({"read": 123.456})] == [123.5]


@pytest.mark.parametrize(
    ("units", "copy", "failing"),
    [(38, 340.0, []), (38, 325.0, ["copy bandwidth"]), (304, 2600.0, ["copy bandwidth"]), (304, 2700.0, [])],
)
def test_partition_of_a_card_is_compared_with_its_part(units: int, copy: float, failing: list[str]) -> None:
    assert failed(MI300X, {"copy": copy}, units) == failing


def test_rdna_card_of_which_torch_counts_pairs_of_units_is_a_whole_card() -> None:
    assert bandwidth.share_of_card(XT, 42) == 1.0


@pytest.mark.parametrize(
    ("name", "arch", "figure"),
    [
        ("AMD Instinct MI60 / MI50", "gfx906:sramecc-:xnack-", 1024.0),
        ("AMD Instinct MI250X / MI250", "gfx90a:sramecc+:xnack-", 1638.0),
        ("Radeon 8060S Graphics", "gfx1151", 256.0),
        ("AMD Radeon RX 7900 XTX", "gfx1100", 960.0),
        ("AMD Radeon RX 9070 GRE", "gfx1201", 432.0),
        ("AMD Radeon PRO W7800 48GB", "gfx1100", None),
        ("AMD Radeon RX 7600M XT", "gfx1102", None),
        ("AMD Radeon RX 7900 XT", "gfx1030", None),
        ("", "gfx942", None),
        ("NVIDIA H200", "sm_90", 4800.0),
        ("NVIDIA H100 PCIe", "sm_90", None),
    ],
)
def test_figure_of_a_card_is_found_by_name_and_architecture(name: str, arch: str, figure: float | None) -> None:
    assert bandwidth.stated(name, arch) == figure


def test_names_that_fit_unlike_cards_have_no_figure() -> None:
    assert bandwidth.stated("AMD Radeon RX 6900 XT / RX 6950 XT", "gfx1030") is None


def test_cards_of_the_table_of_peaks_have_a_bandwidth() -> None:
    missing = {name for peak in peaks.PEAKS for name in peak.names if bandwidth.stated(name, peak.arch) is None}
    assert missing == {"A100", "H100 80GB HBM3"}


def test_best_sample_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 4.0, 4.5, 5.0, 6.0, 9.0, 9.0])
    monkeypatch.setattr(bandwidth, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert bandwidth.fastest(lambda: None, "cpu", 5.5) == 0.5 / bandwidth.CALLS
