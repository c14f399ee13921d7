"""What a log, a request and a host state, each with where it is from."""

import dataclasses

import pytest

from rocmatrix.diagnosis import diagnosis
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.diagnosis.upstream import facts
from rocmatrix.host import hardware

CARD = hardware.Card(
    index=0, node=1, gfx="gfx1100", integrated=False, memory_bytes=1, compute_units=1, unique_id=None, gpu_id=None,
    device_id=None, pci_address=None, render_minor=None, render=None, hive_id=None,
)  # fmt: skip


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    bare = hardware.detect(tmp_path_factory.mktemp("host"))
    return dataclasses.replace(bare, cards=(CARD,), kernel="6.12")


def known(log, host, *, here, requested):
    found = diagnosis.diagnose([log.encode()], name="a.log", signatures=(), here=here)
    return facts.known(log, found, {}, requested=requested, host=host)


def test_host_without_a_card_states_nothing(tmp_path):
    assert facts.of_host(hardware.detect(tmp_path), {}, tmp_path) == {}


def test_card_and_rocm_of_a_request_are_not_from_the_log(host):
    here = HostContext(architecture="gfx942", torch="2.9.1", rocm="6.3")
    stated = known("an error\n", host, here=here, requested=True)
    assert stated == {"cards": ("gfx942", facts.REQUESTED), "rocm": ("6.3", facts.REQUESTED)}


def test_card_of_this_host_is_not_from_the_log(host):
    stated = known("an error\n", host, here=HostContext(architecture="gfx1100"), requested=False)
    assert (stated["cards"], stated["kernel"]) == (("1 x gfx1100", facts.FROM_HOST), ("6.12", facts.FROM_HOST))


@pytest.mark.parametrize(
    ("log", "own"),
    [("GPU arch: gfx942\n", False), ("GPU arch: gfx942\nGPU arch: gfx950\n", False), ("GPU arch: gfx1100\n", True),
     ("GPU arch: gfx942\nGPU arch: gfx1100\n", True)],
)  # fmt: skip
def test_host_is_left_out_where_the_log_names_other_cards_alone(host, log, own):
    stated = known(log, host, here=HostContext(architecture="gfx1100"), requested=False)
    assert (stated.get("kernel") == ("6.12", facts.FROM_HOST)) == own
    if log.count("gfx") == 1:
        assert stated["cards"] == (log.split()[-1], facts.FROM_LOG)


def test_log_names_its_versions_before_the_request(host):
    here = HostContext(architecture="gfx942", torch="2.9.1", rocm="6.3")
    stated = known("PyTorch version: 2.8.0+rocm6.4\n", host, here=here, requested=True)
    assert (stated["rocm"], stated["versions"]) == (("6.4", facts.FROM_LOG), ("torch 2.8.0+rocm6.4", facts.FROM_LOG))
