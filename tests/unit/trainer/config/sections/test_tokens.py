"""Settings of rows of tokens: fields under other names."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from trainer.config.parsing import renames
from trainer.config.sections.tokens import TokensConfig
from trainer.config.train import TrainConfig


def test_renamed_fields_are_read_from_pairs_of_names(tmp_path):
    config = TrainConfig.of(task="lm", data=tmp_path / "a.csv", rename=renames("q=instruction,a=output"))
    assert isinstance(config.data, TokensConfig)
    assert config.data.rows.names == {"q": "instruction", "a": "output"}


@pytest.mark.parametrize("text", ["q", "q=", "=a", "q=a=b", "q=a,q=b", "q=a,r=a"])
def test_pairs_of_names_that_are_none_or_twice_are_refused(text):
    with pytest.raises(ArgumentTypeError):
        renames(text)
