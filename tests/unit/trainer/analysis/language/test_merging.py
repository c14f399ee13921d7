"""An adapter merged into its base."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.decoders import printed_events
from trainer.analysis.language import command
from trainer.analysis.language.loading import load
from trainer.analysis.language.merging import CHECKED_TOKENS, TOLERANCE, merge_to
from trainer.runtime.errors import TrainerError


def test_merged_folder_gives_the_logits_of_the_adapter(adapter, tmp_path, capsys):
    command.merge(model=adapter, output=tmp_path / "merged")
    (event,) = printed_events(capsys)
    assert event["largest_difference"] < 1e-4
    tokens = torch.arange(20).reshape(1, 20)
    with torch.no_grad():
        merged, adapted = load(tmp_path / "merged").made.model(tokens), load(adapter).made.model(tokens)
    assert torch.allclose(merged, adapted, atol=1e-5)
    for name in ("tokenizer.json", "chat_template.jinja", "generation_config.json"):
        assert (tmp_path / "merged" / name).is_file()


def test_merge_without_adapter_or_onto_a_folder_is_refused(base, adapter, tmp_path):
    for folder, output in ((base, tmp_path / "new"), (adapter, base)):
        with pytest.raises(TrainerError) as caught:
            command.merge(model=folder, output=output)
        assert caught.value.code == "RM500"


def test_merge_that_changes_the_logits_is_refused(adapter, tmp_path, monkeypatch):
    from trainer.models.adapters.lora import LoraLinear

    true = LoraLinear.merged
    monkeypatch.setattr(LoraLinear, "merged", lambda self: true(self) * 1.01)
    with pytest.raises(TrainerError) as caught:
        command.merge(model=adapter, output=tmp_path / "merged")
    assert caught.value.code == "RM718"
    assert not (tmp_path / "merged").exists()


def test_merge_returns_what_it_wrote_and_what_it_compared(adapter, tmp_path):
    made = merge_to(load(adapter), tmp_path / "merged")
    assert made["folder"] == str(tmp_path / "merged")
    assert made["tokens"] == CHECKED_TOKENS
    assert set(made["files"]) <= {path.name for path in (tmp_path / "merged").iterdir()}
    assert 0 <= made["largest_difference"] <= TOLERANCE[torch.float32]


@pytest.mark.parametrize(("factor", "refused"), [(0.99, False), (1.01, True), (float("nan"), True)])
def test_difference_of_the_logits_is_bounded(adapter, tmp_path, monkeypatch, factor, refused):
    first = torch.ones(1, 3, 5, dtype=torch.float64)
    logits = iter([first, first * (1 + factor * TOLERANCE[torch.float32])])
    monkeypatch.setattr("trainer.analysis.language.merging._logits", lambda _: next(logits))
    if not refused:
        assert merge_to(load(adapter), tmp_path / "merged")["largest_difference"] < TOLERANCE[torch.float32]
        return
    with pytest.raises(TrainerError, match="RM718"):
        merge_to(load(adapter), tmp_path / "merged")
