"""What every scheduler's destination holds: numbers from one, and ranks by cards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.jobs.destination import Destination
from rocmatrix.jobs.schedulers.slurm import SlurmDestination
from rocmatrix.runtime.errors import RocmatrixError


class Nowhere(Destination):
    def job(self, sending):
        raise NotImplementedError


@given(st.integers(1, 99) | st.none(), st.integers(0, 16))
def test_ranks_are_those_named_else_one_a_card_and_at_least_one(processes, cards):
    assert Nowhere(processes=processes).ranks(cards) == (processes or max(1, cards))


@pytest.mark.parametrize(("field", "flag"), [("nodes", "--nodes"), ("processes", "--processes"), ("cards", "--cards")])
@pytest.mark.parametrize("number", [0, -1])
def test_number_below_one_is_refused_with_its_option(field, flag, number):
    with pytest.raises(RocmatrixError, match=f"{flag} takes a whole number from 1, not {number}") as refused:
        Nowhere(**{field: number})
    assert refused.value.code == "RM404"


@pytest.mark.parametrize("image", ["-v", "--privileged"])
def test_image_that_an_engine_takes_for_an_option_is_refused(image):
    with pytest.raises(RocmatrixError, match="RM404"):
        SlurmDestination(under="docker", image=image)
