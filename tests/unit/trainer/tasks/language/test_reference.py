"""Log-probabilities under the reference that are computed once: the values of each step, in any cut and share."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial

import pytest
import torch

from tests.fixtures.fast_blocks import decoder
from trainer.data.tokens.partition import JudgedPartition, PairPartition
from trainer.device.memory import OutOfMemory
from trainer.models.language.model import JudgedModel, PreferenceModel
from trainer.tasks.language.reference import with_reference
from trainer.tasks.task import Evaluation

TOKENS = torch.randint(61, (5, 2, 3, 10), generator=torch.Generator().manual_seed(6))
GROUPS = {"tokens": TOKENS, "labels": TOKENS.roll(-1, 3), "documents": torch.zeros_like(TOKENS)}
PAIRS = {name: value[:, :, 0] for name, value in GROUPS.items()}
KINDS = {
    "dpo": (partial(PreferenceModel, beta=0.3), PairPartition(**PAIRS)),
    "kto": (
        partial(JudgedModel, beta=0.3, weights=(1.0, 2.0)),
        JudgedPartition(**GROUPS, verdicts=torch.tensor([[1.0, -1.0, 0.0]] * 5)),
    ),
}


def evaluation(forward, **more):
    how = {"device": torch.device("cpu"), "dtype": torch.float64, "rows": 2, "autocast": contextlib.nullcontext}
    alone = {"rank_slice": lambda rows: slice(0, rows), "sum": lambda value: value}
    return Evaluation(forward=forward, **{**how, **alone, **more})


@pytest.fixture(params=KINDS)
def given(request):
    make, part = KINDS[request.param]
    return make(decoder("llama", ("all",))), part


def test_loss_with_the_reference_of_before_is_that_of_one_computed_in_the_step(given):
    model, part = given
    known = with_reference(part, evaluation(model))
    assert model.training
    assert known.reference.shape == part.tokens.shape[:-1]
    (with_it, _), (without, _) = (each.rows(torch.tensor([3, 1]), torch.device("cpu")) for each in (known, part))
    assert "reference" not in without
    assert model(**with_it).item() == pytest.approx(model(**without).item(), rel=1e-12)
    with_it["reference"] += torch.arange(with_it["reference"].numel()).view(with_it["reference"].shape)
    assert model(**with_it).item() != pytest.approx(model(**without).item(), rel=1e-3)  # it is what the loss takes


def test_ranks_that_compute_their_shares_have_all_of_it_after_the_sum(given):
    model, part = given
    whole = with_reference(part, evaluation(model)).reference
    one = with_reference(part, evaluation(model, rank_slice=lambda rows: slice(3))).reference
    assert (one[3:] == 0).all()
    add = {"rank_slice": lambda rows: slice(3, rows), "sum": lambda value: value + one}
    assert torch.allclose(with_reference(part, evaluation(model, **add)).reference, whole, rtol=1e-12)


def test_rows_that_do_not_fit_at_a_time_are_computed_fewer_at_a_time(given):
    model, part = given
    sizes = []

    class Limited(torch.nn.Module):
        def forward(self, tokens, **inputs):
            sizes.append(len(tokens))
            if len(tokens) > most:
                raise OutOfMemory("no room")
            return model(tokens, **inputs)

    whole, most = with_reference(part, evaluation(model)).reference, 1
    assert torch.allclose(with_reference(part, evaluation(Limited(), rows=4)).reference, whole, rtol=1e-12)
    assert sizes == [4, 2, 1, 1, 1, 1, 1]
    most = 0
    with pytest.raises(OutOfMemory):
        with_reference(replace(part), evaluation(Limited()))
