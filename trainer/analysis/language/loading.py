"""A language model to use: a model folder, or an adapter folder with the base model that it names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.data.tokens.chat_template import ChatTemplate, read_template
from trainer.data.tokens.tokenizer import Tokenizer, read_tokenizer
from trainer.models.adapters import by_peft, peft_format, peft_record
from trainer.models.pretrained import folder as pretrained
from trainer.models.pretrained import own_class
from trainer.runtime.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model in evaluation mode on the CPU, with tokenizer and, where there is one, chat template.

    adapted: whether an adapter is on it, which `adapters_disabled` switches off.
    """

    made: pretrained.Pretrained
    tokenizer: Tokenizer
    template: ChatTemplate | None
    adapted: bool


def load(folder: Path, base: Path | None = None) -> Loaded:
    """Return the model of `folder`; `base` is where an adapter's base model is, if not where the adapter records it.

    Raises:
        TrainerError: RM700 to RM707, RM712, RM713 and RM720.
    """
    adapter = (folder / peft_record.CONFIG).is_file()
    refuse_other_run(folder)
    source = (base or base_of(folder)) if adapter else folder
    if adapter and by_peft.is_by_peft(folder):
        raw = pretrained.read_config(source)
        made = pretrained.Pretrained(model=own_class.read(source, raw, None), raw=raw, source=source)
        by_peft.load(made.model, folder)
    else:
        made = pretrained.read(source, to_compute=True)
    if adapter and not by_peft.is_wrapped(made.model):
        peft_format.read(made.model.network, folder, family=made.family)
    tokenizer = read_tokenizer(source)
    pretrained.require_vocabulary(made.model, tokenizer.size, str(source))
    made.model.eval()
    return Loaded(made=made, tokenizer=tokenizer, template=_template(source, tokenizer.special), adapted=adapter)


def refuse_other_run(folder: Path) -> None:
    """Raise RM720 where the folder is a finished run's on bars or a table."""
    if (folder / pretrained.CONFIG).exists() or not (folder / "metadata.json").is_file():
        return
    with contextlib.suppress(OSError, ValueError):
        record = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        if isinstance(record, dict) and "scaler" in record:
            raise TrainerError(
                "RM720", what=f"{folder} is a run on {record.get('data', {}).get('name')}", where=str(folder)
            )


def base_of(folder: Path) -> Path:
    """Return the base model's folder that an adapter names: as it stands, or relative to the adapter.

    Raises:
        TrainerError: RM712 where it names none or there is no such folder.
    """
    path = folder / peft_record.CONFIG
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
        named = Path(record["base_model_name_or_path"])
    except (ValueError, KeyError, TypeError) as error:
        raise TrainerError("RM712", what="adapter_config.json names no base model", where=str(path)) from error
    for place in (named, folder / named):
        if place.is_dir():
            return place
    what = f"the adapter's base model {named} is no folder here"
    raise TrainerError("RM712", what=what, where=str(path), next="Give its folder with --base.")


def _template(folder: Path, special: Mapping[str, str]) -> ChatTemplate | None:
    try:
        return read_template(folder, special)
    except TrainerError:
        return None
