"""A network as it is built for a run: where its weights are held before they are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trainer.config.sections.decoder import AdapterConfig, DecoderConfig
from trainer.config.train import TrainConfig
from trainer.device.precision import Precision
from trainer.distributed.collectives import Ranks
from trainer.models.decoder.model import Decoder
from trainer.models.pretrained import folder as pretrained
from trainer.models.pretrained.families import decoder_config
from trainer.run.gates.child import Verdict
from trainer.run.gates.decide import Gates
from trainer.run.phases.attempt import Attempt
from trainer.run.phases.network import built
from trainer.tasks.language.network import build, load_weights
from trainer.tasks.language.tuning import LanguageTuner
from trainer.tasks.task import NetworkSpec

pytestmark = pytest.mark.usefixtures("torch_as_before")
RAW = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
}


def test_built_holds_frozen_weights_in_16_bits_before_the_folders_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In fp32 a model of 7B would take 28 GB of the host's memory, which then has the files' pages, too."""
    source = Decoder(decoder_config(RAW))
    pretrained.write(tmp_path / "model", pretrained.Pretrained(model=source, raw=RAW))
    config = DecoderConfig(model=tmp_path / "model", adapter=AdapterConfig(adapter="lora", lora_rank=2))
    seen: list[set[torch.dtype]] = []

    def load(model: torch.nn.Module, device: str) -> None:
        seen.append({weight.dtype for weight in model.parameters() if weight.ndim == 2 and not weight.requires_grad})
        load_weights(model, folder=tmp_path / "model")

    monkeypatch.setattr(LanguageTuner, "why_not", lambda self, context: None)  # as on a card
    monkeypatch.setattr(LanguageTuner, "use", lambda self, model, context: {})
    network = NetworkSpec(
        description={},
        build=lambda: build(RAW, config, "pretrain", seed=0),
        load=load,
        tune=LanguageTuner(requested="auto", tokens=8),
    )
    attempt = Attempt(config=TrainConfig.of(task="lm"), name=None, settings=None, bootstrap=Ranks())
    precision = Precision(name="bf16", reason="", device_type="cpu")
    model, _, _ = built(network, attempt, "cpu", precision, Gates())
    assert seen == [{torch.bfloat16}]
    held = dict(model.decoder.named_parameters())  # type: ignore[union-attr, operator]
    for name, weight in source.named_parameters():
        ours = held.get(name, held.get(name.replace("_proj.weight", "_proj.base.weight")))
        assert ours is not None and torch.equal(ours, weight.to(ours.dtype)), name
    assert {weight.dtype for weight in model.parameters() if weight.requires_grad} == {torch.float32}


@pytest.mark.parametrize(
    ("status", "expected"), [("passed", "cuda:0"), ("wrong", "cpu"), ("untried", "cpu"), (None, "cpu")]
)
def test_built_has_weights_quantised_on_a_card_whose_codes_were_seen_to_be_the_hosts(
    monkeypatch: pytest.MonkeyPatch, status: str | None, expected: str
) -> None:
    seen: list[str] = []

    def load(model: torch.nn.Module, device: str) -> None:
        seen.append(device)
        raise InterruptedError

    spec = NetworkSpec(description={}, build=lambda: torch.nn.Linear(2, 2), load=load)
    attempt = Attempt(config=TrainConfig.of(task="lm"), name=None, settings=None, bootstrap=Ranks())
    verdicts = () if status is None else (Verdict(gate="nf4", status=status),)
    with pytest.raises(InterruptedError):
        built(spec, attempt, "cuda:0", Precision(name="fp32", reason="", device_type="cuda"), Gates(verdicts=verdicts))
    assert seen == [expected]
