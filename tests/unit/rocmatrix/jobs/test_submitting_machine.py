"""What is sent to other machines holds nothing of the one that submits: each emitted file is searched for it.

The machine is a recorded tree with cards whose numbers and owners are known, half of them asked for; its user, name,
home, PATH and folders are set to words that occur nowhere else.
"""

import itertools
import os
import socket
from dataclasses import replace

import pytest

from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import cluster, job, programs
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import TRAIN
from rocmatrix.jobs.runner import Job
from rocmatrix.jobs.schedulers.kubernetes import KubernetesDestination
from rocmatrix.jobs.schedulers.slurm import SlurmDestination
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.paths import ROOT
from tests.fixtures import cells, sysfs

UID, GID = 31337, 41337
OWN_WORDS = ("submit-host-1", "/home/submitter", "/only/here/bin", "hunter2", str(UID), str(GID))
NATIVE = {"checkout": "/shared/checkout", "python": "/shared/venv/bin/python"}
MACHINES = [
    (sysfs.two_rx_7900_xt, cells.GFX1100),
    (sysfs.desktop_with_igpu, cells.GFX1100),
    (sysfs.mi50, cells.GFX906),
    (sysfs.no_driver, cells.CPU),
]


@pytest.fixture
def here(monkeypatch):
    """Give this process a user, a name and an environment of their own."""
    monkeypatch.setattr(os, "getuid", lambda: UID)
    monkeypatch.setattr(os, "getgid", lambda: GID)
    monkeypatch.setattr(os, "getgroups", lambda: [GID])
    monkeypatch.setattr(socket, "gethostname", lambda: OWN_WORDS[0])
    words = {"HOSTNAME": OWN_WORDS[0], "HOME": OWN_WORDS[1], "A_SECRET": OWN_WORDS[3], "PYTHONPATH": OWN_WORDS[2]}
    for name, word in {**words, "PATH": f"{OWN_WORDS[2]}:{os.environ['PATH']}"}.items():
        monkeypatch.setenv(name, word)


def own(hardware):
    """Return all that names this machine's cards and their nodes."""
    cards = hardware.cards
    paths = {card.render_path for card in cards} | {card.pci_address for card in cards}
    groups = {f"- {card.render.gid}" for card in cards} | {f"group-add={card.render.gid}" for card in cards}
    return {text for text in ({card.uuid for card in cards} | paths | groups) if text}


def destinations():
    for nodes, cards, rdma in itertools.product((1, 2), (1, None), (False, True)):
        common = {"nodes": nodes, "cards": cards, "rdma": rdma}
        yield SlurmDestination(**common, **NATIVE)
        for under in ("docker", "apptainer", "pyxis"):
            yield SlurmDestination(under=under, image="/shared/image.sif", **common)
        site = Site(claim="runs", rdma="rdma/hca" if rdma else None)
        yield KubernetesDestination(groups=(7777,), site=site, **common)


def emitted(tmp_path, machine, cell):
    hardware = read_hardware(machine(tmp_path / "machine"))
    options = {"output": "/shared/runs", "run": "r"}
    job_request = JobRequest(program=TRAIN, request=Request(), where="", options=options)
    for each in destinations():
        to = each if cell.architecture else replace(each, cards=None)
        made = cluster.prepare(job_request, to, matrix=cells.MATRIX, cell=cell, hardware=hardware)
        yield to, hardware, "\n".join(made.files.values())


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("machine", "cell"), MACHINES)
def test_emitted_file_holds_nothing_of_this_machine(tmp_path, machine, cell):
    files = list(emitted(tmp_path, machine, cell))
    assert len(files) == 40
    for to, hardware, text in files:
        found = {word for word in {*OWN_WORDS, str(ROOT), *own(hardware), str(tmp_path)} if word in text}
        assert not found, f"{found} in what is sent to {to}"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("to", [SlurmDestination()])
def test_native_job_without_other_paths_names_this_checkout_and_python_alone(tmp_path, monkeypatch, to):
    def native_job(job_request, **_):
        argv = ["/opt/python", "-P", "-m", "trainer", "train", *programs.flags(job_request.options)]
        return Job(argv=argv, environment={"PYTHONPATH": f"{ROOT}:{OWN_WORDS[2]}"}, why="")

    monkeypatch.setattr(job, "native_job", native_job)
    hardware = read_hardware(sysfs.no_driver(tmp_path / "machine"))
    job_request = JobRequest(program=TRAIN, request=Request(), where="", options={"output": "/shared/runs", "run": "r"})
    made = cluster.prepare(job_request, replace(to), matrix=cells.MATRIX, cell=cells.CPU, hardware=hardware)
    (text,) = made.files.values()
    assert not {word for word in OWN_WORDS if word in text}
    assert f"export PYTHONPATH={ROOT}\n" in text
