from __future__ import annotations

from trainer.distributed.transports.transport import TRANSPORTS, candidates


def names(device: str, requested: str, nccl_built: bool = True) -> list[str]:
    return [transport.name for transport in candidates(device, requested, nccl_built=nccl_built)]


def test_cards_climb_down_from_the_fastest() -> None:
    assert names("cuda", "auto") == ["nccl", "nccl-no-p2p", "gloo", "host"]


def test_torch_without_nccl_starts_lower() -> None:
    assert names("cuda", "auto", nccl_built=False) == ["gloo", "host"]


def test_cpu_ranks_have_gloo() -> None:
    assert names("cpu", "auto") == ["gloo"]


def test_requested_transport_is_the_only_one() -> None:
    for name in TRANSPORTS:
        assert names("cuda", name) == [name]
        assert names("cpu", name, nccl_built=False) == [name]


def test_settings_and_host_copies_belong_to_one_transport_each() -> None:
    assert {name: transport.environment for name, transport in TRANSPORTS.items() if transport.environment} == {
        "nccl-no-p2p": {"NCCL_P2P_DISABLE": "1"}
    }
    assert [name for name, transport in TRANSPORTS.items() if transport.on_host] == ["host"]
