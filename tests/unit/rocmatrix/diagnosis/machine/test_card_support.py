"""AMD's lists are asked for the card and the ROCm release that a log or host names."""

import pytest

from rocmatrix.diagnosis.machine import card_support
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.paths import ROOT

MATRIX = matrix_file.load(ROOT)


def support_of(architecture, rocm):
    return card_support.of(MATRIX, HostContext(architecture=architecture, rocm=rocm))


def test_card_that_the_list_of_its_release_lacks_is_unlisted():
    found = support_of("gfx803", "6.2.0")
    assert (found.is_listed, found.why) == (False, "AMD's list for ROCm 6.2 holds no card of gfx803.")


def test_card_on_the_list_of_its_release_is_listed():
    found = support_of("gfx1100", "6.2")
    assert (found.is_listed, found.why) == (True, "AMD's list for ROCm 6.2 holds cards of gfx1100.")


def test_lists_that_were_not_read_give_nothing():
    assert card_support.of(None, HostContext(architecture="gfx1100", rocm="6.2")) is None


@pytest.mark.parametrize(("architecture", "rocm"), [(None, "6.2"), ("gfx803", None), ("gfx803", "1.9.0")])
def test_unknown_value_or_unread_list_gives_nothing(architecture, rocm):
    assert support_of(architecture, rocm) is None
