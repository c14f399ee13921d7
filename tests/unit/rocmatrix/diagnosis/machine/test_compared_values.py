"""Rules on two values for a log and its host: the log's own values decide where it has them."""

from rocmatrix.diagnosis.machine import compared_values
from rocmatrix.diagnosis.machine.log_environment import Values
from rocmatrix.diagnosis.ranking import HostContext
from tests.unit.rocmatrix.diagnosis.known import COMPARISONS

OVERRIDE = "compared-override-generation"


def compared(log, here):
    reader = Values(COMPARISONS)
    list(reader.watched([log.encode()]))
    return compared_values.of(reader, here, {})


def test_host_of_another_card_than_the_log_is_left_out():
    values = {"override_gfx": ("10.3.0",), "card_gfx": ("gfx906",)}
    here = HostContext(architecture="gfx906", assumed=True, values=values)
    assert OVERRIDE in compared("nothing\n", here)
    assert OVERRIDE not in compared("gpu_type=gfx1031\n", here)


def test_log_decides_before_the_host():
    here = HostContext(values={"override_gfx": ("10.3.0",), "card_gfx": ("gfx1100",)})
    log = "HSA_OVERRIDE_GFX_VERSION=11.0.0\n  Name:                    gfx1031\n"
    assert compared(log, here)[OVERRIDE].source == "log"


def test_card_has_no_architecture_without_the_matrix():
    log = "Marketing Name:          AMD Instinct MI210\nName:                    gfx1030\n"
    assert compared(log, HostContext()) == {}
