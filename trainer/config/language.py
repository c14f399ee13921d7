"""Which language model is trained, on what rows: settings of --task lm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from trainer.config.parsing import Flag, names, number, one_of, or_none, share, switch, whole

LM = "lm"
METHODS, ADAPTERS = ("auto", "pretrain", "sft", "dpo"), ("none", "lora", "qlora")
# Spelled out, so that --help imports no torch; tests hold them equal to data.tokens.tokenize.
BAD_ROWS, TOO_LONG, STOP_TOKEN = ("stop", "drop"), ("stop", "drop", "cut"), ("require", "append")
FAST = ("auto", "off", "nondeterministic")
MOST_SEQUENCE, MOST_RANK = 2**24, 2**14
# Defaults of other settings where --task lm is given and they are not; those of tables suit no language model.
FROM_SCRATCH: dict[str, Any] = {"learning_rate": 1e-3, "batch_size": 8, "epochs": 1, "weight_decay": 0.1}
TUNED: dict[str, Any] = {**FROM_SCRATCH, "learning_rate": 2e-5, "weight_decay": 0.0}
ADAPTED: dict[str, Any] = {**TUNED, "learning_rate": 2e-4}


def _folder_or_none(text: str) -> Path | None:
    return None if text == "none" else Path(text)


def _of(help: str, parse: Callable[[str], Any]) -> Flag:
    return Flag(help, parse, "language", sparse=True)


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Settings of language models; each field is the flag of the same name."""

    model: Annotated[
        Path | None,
        _of("folder in Hugging Face layout to begin with (default: none, a new small decoder)", _folder_or_none),
    ] = None
    method: Annotated[str, _of("pretrain, sft, dpo, or auto: by the fields of the first row", one_of(*METHODS))] = (
        "auto"
    )
    sequence: Annotated[int, _of("tokens of a row", whole(8, MOST_SEQUENCE))] = 256
    decoder_layers: Annotated[int, _of("blocks of a new decoder", whole(1, 1024))] = 4
    decoder_width: Annotated[int, _of("width of a new decoder, a multiple of 32", whole(32, 2**17))] = 128
    adapter: Annotated[str, _of("none: all weights; lora; qlora: over 4-bit weights", one_of(*ADAPTERS))] = "none"
    lora_rank: Annotated[int, _of("rank of the adapter", whole(1, MOST_RANK))] = 16
    lora_alpha: Annotated[float, _of("scale of the adapter, divided by its rank", number(1e6))] = 32.0
    lora_dropout: Annotated[float, _of("share of the adapter's inputs set to 0 in training", share)] = 0.0
    lora_targets: Annotated[tuple[str, ...], _of("layers to adapt, as q_proj,v_proj, or all", names)] = ("all",)
    lora_stabilized: Annotated[bool, _of("divide alpha by the root of the rank (rsLoRA)", switch)] = False
    bad_rows: Annotated[str, _of("invalid rows: stop, or drop and count them", one_of(*BAD_ROWS))] = "stop"
    too_long: Annotated[str, _of("rows beyond --sequence: stop, drop or cut", one_of(*TOO_LONG))] = "stop"
    stop_token: Annotated[
        str, _of("answers whose stop token carries no loss: require one, or append it", one_of(*STOP_TOKEN))
    ] = "require"
    train_on_prompts: Annotated[bool, _of("prompts carry loss, too", switch)] = False
    packing: Annotated[bool, _of("several rows share a sequence, without attending to each other", switch)] = True
    validation_share: Annotated[float, _of("share of the rows that is held out", share)] = 0.05
    dpo_beta: Annotated[float, _of("how strongly DPO holds to the reference", number(1e3))] = 0.1
    fast: Annotated[
        str,
        _of(
            "faster ways on a card that pass a comparison with fp64: auto; off; "
            "nondeterministic: also those whose results differ from run to run",
            one_of(*FAST),
        ),
    ] = "auto"
    max_rows: Annotated[int | None, _of("use so many rows of the file (default: all)", or_none(whole(2)))] = None


LANGUAGE_DECIDING = tuple(f.name for f in fields(LanguageConfig))


def defaults_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults that --task lm brings where neither they nor a run to resume are given."""
    if values.get("task") != LM or values.get("resume"):
        return {}
    own = ADAPTED if values.get("adapter", "none") != "none" else TUNED if values.get("model") else FROM_SCRATCH
    unused = ("epochs",) if values.get("max_steps") else ()
    return {name: value for name, value in own.items() if name not in values and name not in unused}
