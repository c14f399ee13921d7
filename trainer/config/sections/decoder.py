"""Settings of a language model's network: new or from a folder, with or without an adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from trainer.config.choices import ADAPTERS, FAST, LM, REFERENCES
from trainer.config.other_programs import WORDS
from trainer.config.parsing import names, number, one_of, or_none, path, share, switch, whole
from trainer.config.setting import Flag, OnResume
from trainer.runtime.errors import TrainerError

MOST_RANK = 2**14
_fixed = partial(Flag, recipe="language", resume=OnResume.FIXED, sparse=True)
TITLE = "Language models (--task lm): network"


@dataclass(frozen=True, kw_only=True)
class AdapterConfig:
    """Low-rank adapters of linear layers, or another method of peft."""

    title: ClassVar[str] = TITLE
    adapter: Annotated[
        str,
        _fixed(
            "none: train all weights; qlora: over 4-bit weights; peft: another method, by that package itself",
            one_of(*ADAPTERS, also=WORDS["adapter"]),
            common=True,
        ),
    ] = "none"
    lora_rank: Annotated[int, _fixed("rank of the adapter", whole(1, MOST_RANK))] = 16
    lora_alpha: Annotated[float, _fixed("scale of the adapter, divided by its rank", number(1e6))] = 32.0
    lora_dropout: Annotated[float, _fixed("share of the adapter's inputs set to 0 in training", share)] = 0.0
    lora_targets: Annotated[tuple[str, ...], _fixed("layers to adapt, as q_proj,v_proj, or all", names)] = ("all",)
    lora_stabilized: Annotated[bool, _fixed("divide alpha by the root of the rank (rsLoRA)", switch)] = False
    peft_config: Annotated[
        Path | None,
        _fixed("of --adapter peft: its adapter_config.json, as of DoRA or AdaLoRA", or_none(path)),
    ] = None


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """Settings of the decoder that is trained."""

    title: ClassVar[str] = TITLE
    model: Annotated[
        Path | None,
        _fixed(
            "folder in Hugging Face layout to begin with (default: none, a new small decoder)",
            or_none(path),
            common=True,
        ),
    ] = None
    decoder_layers: Annotated[int, _fixed("blocks of a new decoder", whole(1, 1024))] = 4
    decoder_width: Annotated[int, _fixed("width of a new decoder, a multiple of 32", whole(32, 2**17))] = 128
    adapter: AdapterConfig = field(default_factory=AdapterConfig)
    dpo_beta: Annotated[
        float, _fixed("beta of DPO and KTO: weight of the distance to the reference model", number(1e3))
    ] = 0.1
    kto_good_weight: Annotated[float, _fixed("weight of good answers in KTO's loss", number(1e3))] = 1.0
    kto_bad_weight: Annotated[float, _fixed("weight of bad answers in KTO's loss", number(1e3))] = 1.0
    reference: Annotated[
        str,
        _fixed(
            "reference of DPO and KTO: computed again at each step, or cached: once a row, before the first step",
            one_of(*REFERENCES, also=WORDS["reference"]),
        ),
    ] = "again"
    fast: Annotated[
        str,
        _fixed(
            "faster kernels that match fp64 within limits; "
            "nondeterministic: also kernels whose results differ from run to run",
            one_of(*FAST),
        ),
    ] = "auto"

    def require_fitting(self, unused: Mapping[str, Any]) -> None:
        """Raise RM557 for a kernel of attention, which no setting chooses here; `unused` are of other kinds."""
        if unused.get("attention", "auto") != "auto":
            raise TrainerError("RM557", what=f"--attention {unused['attention']} with --task {LM}")


# Defaults of other settings where --task lm is given and they are not; those of tables suit no language model.
FROM_SCRATCH: dict[str, Any] = {"learning_rate": 1e-3, "batch_size": 8, "epochs": 1, "weight_decay": 0.1}
TUNED: dict[str, Any] = {**FROM_SCRATCH, "learning_rate": 2e-5, "weight_decay": 0.0}
ADAPTED: dict[str, Any] = {**TUNED, "learning_rate": 2e-4}


# Muon's own rate does not depend on the width (https://kellerjordan.github.io/posts/muon/).
FROM_SCRATCH_BY_MUON: dict[str, Any] = {**FROM_SCRATCH, "muon_learning_rate": 0.02, "schedule": "linear"}


def defaults_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that --task lm brings where neither they nor a run to resume are given."""
    if values.get("task") != LM or values.get("resume"):
        return {}
    new = FROM_SCRATCH_BY_MUON if values.get("optimizer") == "muon" else FROM_SCRATCH
    own = ADAPTED if values.get("adapter", "none") != "none" else TUNED if values.get("model") else new
    unused = ("epochs",) if values.get("max_steps") else ()
    return {name: value for name, value in own.items() if name not in values and name not in unused}
