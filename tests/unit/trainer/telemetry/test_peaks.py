from __future__ import annotations

import pytest

from trainer.telemetry.peaks import PEAKS, find

PUBLISHED = [  # TFLOPS as AMD and NVIDIA state them, without sparsity
    ("AMD Instinct MI50", "gfx906", "fp32", 13.3),
    ("AMD Instinct MI50", "gfx906", "fp16", 26.5),
    ("AMD Instinct MI100", "gfx908", "fp32", 46.1),
    ("AMD Instinct MI100", "gfx908", "fp16", 184.6),
    ("AMD Instinct MI100", "gfx908", "bf16", 92.3),
    ("AMD Instinct MI210", "gfx90a", "bf16", 181.0),
    ("AMD Instinct MI250X", "gfx90a", "bf16", 383.0 / 2),
    ("AMD Instinct MI300X", "gfx942", "bf16", 1307.4),
    ("AMD Instinct MI300X", "gfx942", "fp32", 163.4),
    ("AMD Instinct MI300A", "gfx942", "fp16", 980.6),
    ("AMD Instinct MI355X", "gfx950", "bf16", 2516.6),
    ("AMD Radeon RX 7900 XTX", "gfx1100", "fp32", 61.4),
    ("AMD Radeon RX 7900 XT", "gfx1100", "fp32", 51.6),
    ("AMD Radeon RX 7900 XT", "gfx1100", "bf16", 103.0),
    ("AMD Radeon RX 6950 XT", "gfx1030", "fp32", 23.7),
    ("Radeon 8060S Graphics", "gfx1151", "fp16", 59.4),
    ("AMD Radeon RX 9070 XT", "gfx1201", "fp16", 195.0),
    ("NVIDIA A100-SXM4-40GB", "sm_80", "bf16", 312.0),
    ("NVIDIA H200", "sm_90", "bf16", 989.4),
    ("NVIDIA H200", "sm_90", "fp32", 67.0),
]


@pytest.mark.parametrize(("name", "arch", "dtype", "tflops"), PUBLISHED)
def test_product_is_the_published_figure(name: str, arch: str, dtype: str, tflops: float) -> None:
    peak = find(name, arch)
    assert peak is not None
    assert peak.flops(dtype) == pytest.approx(tflops * 1e12, rel=0.005)


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("AMD Radeon Graphics", "gfx1151"),
        ("AMD Instinct MI60 / MI50", "gfx906"),
        ("AMD Radeon RX 7900 XTXY", "gfx1100"),
        ("AMD Radeon RX 7900 XT", "gfx1030"),
        ("NVIDIA H100 PCIe", "sm_90"),
        ("Intel(R) Xeon(R) Processor", "x86_64 AVX512"),
    ],
)
def test_card_that_is_unknown_or_ambiguous_has_no_peak(name: str, arch: str) -> None:
    assert find(name, arch) is None


def test_longer_names_win_over_those_they_contain() -> None:
    found = find("AMD Radeon RX 7600 XT", "gfx1102")
    assert found is not None
    assert found.names == ("RX 7600 XT",)


def test_cards_without_bf16_arithmetic_have_no_bf16_peak() -> None:
    assert all(peak.flops("bf16") is None for peak in PEAKS if peak.arch in ("gfx906", "gfx1030"))


def test_peaks_have_source_and_confidence() -> None:
    assert all(peak.source and peak.confidence in ("reported", "general knowledge") for peak in PEAKS)


def test_cards_that_people_own_are_there() -> None:
    names = {name for peak in PEAKS for name in peak.names}
    assert {"RX 7900 XT", "RX 7900 XTX", "MI50", "8060S", "MI300X"} <= names
