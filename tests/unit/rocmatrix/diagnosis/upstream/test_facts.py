"""What a host states of itself."""

from rocmatrix.diagnosis.upstream import facts
from rocmatrix.host import hardware


def test_host_without_a_card_states_nothing(tmp_path):
    assert facts.of_host(hardware.detect(tmp_path), {}, tmp_path) == {}
