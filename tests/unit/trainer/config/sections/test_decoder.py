"""Defaults that language models bring, by what is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.config.sections.decoder import defaults_of


def test_new_language_model_by_muon_has_the_methods_own_rate_and_a_decay():
    found = defaults_of({"task": "lm", "optimizer": "muon"})
    assert (found["muon_learning_rate"], found["schedule"], found["learning_rate"]) == (0.02, "linear", 1e-3)
    given = {"task": "lm", "optimizer": "muon", "schedule": "cosine", "muon_learning_rate": 0.04}
    assert not {"schedule", "muon_learning_rate"} & defaults_of(given).keys()


@pytest.mark.parametrize("more", [{}, {"optimizer": "muon", "model": Path("base")}, {"optimizer": "adamw"}])
def test_models_that_are_tuned_and_other_optimizers_have_no_rate_of_muon(more):
    assert not {"schedule", "muon_learning_rate"} & defaults_of({"task": "lm", **more}).keys()


def test_resumed_run_has_its_own_settings():
    assert defaults_of({"task": "lm", "optimizer": "muon", "resume": "auto"}) == {}
