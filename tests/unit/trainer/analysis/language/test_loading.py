"""A trained model loaded with the base of its adapter."""

from __future__ import annotations

import pytest

from trainer.analysis.language.loading import load
from trainer.runtime.errors import TrainerError


def test_adapter_whose_base_is_gone_names_it(adapter, base, tmp_path):
    base.rename(tmp_path / "moved")
    with pytest.raises(TrainerError) as caught:
        load(adapter)
    assert caught.value.code == "RM712"
    assert load(adapter, base=tmp_path / "moved").adapted
