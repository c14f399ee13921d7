from __future__ import annotations

import pytest
import torch

from trainer.distributed.parallel.join import connect, device_of_rank, world_size
from trainer.runtime.errors import TrainerError

pytestmark = pytest.mark.usefixtures("plain_process")


def second_of_two(monkeypatch: pytest.MonkeyPatch, cards: int) -> None:
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)


@pytest.mark.parametrize(
    ("cards", "requested", "device"),
    [(2, "auto", "cuda:1"), (2, "cuda", "cuda:1"), (2, "cpu", "cpu"), (1, "cpu", "cpu"), (0, "auto", "cpu")],
)
def test_ranks_each_have_a_card_or_all_have_the_cpu(
    monkeypatch: pytest.MonkeyPatch, cards: int, requested: str, device: str
) -> None:
    second_of_two(monkeypatch, cards)
    assert device_of_rank(requested) == device


@pytest.mark.parametrize("requested", ["cuda", "cuda:0", "auto"])
def test_cards_that_are_too_few_are_refused_however_ranks_were_started(
    monkeypatch: pytest.MonkeyPatch, requested: str
) -> None:
    second_of_two(monkeypatch, cards=1)
    with pytest.raises(TrainerError, match="RM563"):
        device_of_rank(requested)


@pytest.mark.parametrize("text", ["abc", "-1", "", "1.5", "²"])
def test_variable_of_a_launcher_that_is_no_number_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("WORLD_SIZE", text)
    with pytest.raises(TrainerError, match="RM500") as caught:
        world_size()
    assert "WORLD_SIZE" in str(caught.value)
    monkeypatch.setenv("RANK", text)
    with pytest.raises(TrainerError, match=r"RM500[\s\S]*RANK"):
        device_of_rank("auto")


@pytest.mark.parametrize("size", ["0", "2"])
def test_world_size_without_the_rest_of_a_launcher_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(TrainerError, match="RM500") as caught:
        connect()
    assert f"WORLD_SIZE is '{size}' without RANK, MASTER_ADDR, MASTER_PORT" in caught.value.what
    assert "env -u WORLD_SIZE" in caught.value.next
