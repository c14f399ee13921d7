"""Settings of rows of tokens, for language models (--task lm)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

from trainer.config.absent_flags import METHODS_ABSENT
from trainer.config.choices import BAD_RECORDS, METHODS, STOP_TOKEN, TOO_LONG
from trainer.config.other_programs import WORDS
from trainer.config.parsing import one_of, or_none, renames, share, switch, whole
from trainer.config.sections.rows import FileConfig
from trainer.config.setting import Flag, OnResume

MOST_SEQUENCE = 2**24
TITLE = "Language models (--task lm): rows"
_fixed = partial(Flag, recipe="language", resume=OnResume.FIXED, sparse=True)


@dataclass(frozen=True, kw_only=True)
class RowsConfig:
    """Which rows of the file, and under which names."""

    title: ClassVar[str] = TITLE
    rename: Annotated[
        tuple[str, ...], _fixed("fields of rows under other names, as question=instruction,answer=output", renames)
    ] = ()
    max_rows: Annotated[
        int | None, _fixed("use at most this many rows of the file (default: all)", or_none(whole(2)))
    ] = None

    @property
    def names(self) -> dict[str, str]:
        """What each field of --rename is called here, by its name in the file."""
        return dict(each.split("=", 1) for each in self.rename)


@dataclass(frozen=True, kw_only=True)
class TokensConfig(FileConfig):
    """Settings of the rows that a language model is trained on."""

    title: ClassVar[str] = TITLE
    method: Annotated[
        str,
        _fixed(
            "auto: by the fields of the first row",
            one_of(*METHODS, also=WORDS["method"], absent=METHODS_ABSENT),
            common=True,
        ),
    ] = "auto"
    sequence: Annotated[int, _fixed("tokens of a row", whole(8, MOST_SEQUENCE), common=True)] = 256
    bad_rows: Annotated[str, _fixed("invalid rows: stop, or drop and count them", one_of(*BAD_RECORDS))] = "stop"
    too_long: Annotated[str, _fixed("rows longer than --sequence", one_of(*TOO_LONG))] = "stop"
    stop_token: Annotated[
        str, _fixed("answers whose stop token carries no loss: require one, or append it", one_of(*STOP_TOKEN))
    ] = "require"
    train_on_prompts: Annotated[bool, _fixed("prompts carry loss, too", switch)] = False
    kto_group: Annotated[
        int, _fixed("answers of a row of KTO; prompts of one row exchange answers for its KL term", whole(2, 1024))
    ] = 4
    packing: Annotated[bool, _fixed("several rows share a sequence, without attending to each other", switch)] = True
    validation_share: Annotated[float, _fixed("share of the rows that is held out for validation", share)] = 0.05
    rows: RowsConfig = field(default_factory=RowsConfig)
