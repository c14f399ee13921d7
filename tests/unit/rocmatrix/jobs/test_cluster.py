"""A job for a scheduler: made from what this machine has or from what is told, refused with a code otherwise."""

import re
from dataclasses import dataclass, replace

import pytest

from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.containers.portable_spec import Places
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import cluster
from rocmatrix.jobs.destination import Destination, Submission
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import TRAIN
from rocmatrix.jobs.runner import Job
from rocmatrix.jobs.schedulers.kubernetes import KubernetesDestination
from rocmatrix.jobs.schedulers.slurm import SlurmDestination
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs
from tests.fixtures.clusters import IMAGE, KUBERNETES, SLURM, file_of


def test_rank_count_is_one_a_card_unless_another_is_given(prepare):
    machine = {"cell": cells.GFX1100, "machine": sysfs.two_rx_7900_xt}
    assert {"--gres=gpu:2", "--nproc-per-node=2"} <= set(file_of(prepare(SLURM, **machine)).split())
    with pytest.raises(RocmatrixError, match="--processes 5, and 4 card"):
        prepare(replace(SLURM, processes=5, cards=4), **machine)
    placement = replace(SLURM, processes=3, cards=4)
    assert {"--gres=gpu:4", "--nproc-per-node=3"} <= set(file_of(prepare(placement, **machine)).split())


@pytest.mark.parametrize("to", [replace(KUBERNETES, cards=1), replace(SLURM, under="docker", cards=1)])
def test_fewer_cards_than_are_here_can_be_requested(prepare, to):
    text = file_of(prepare(to, cell=cells.GFX1100, machine=sysfs.two_rx_7900_xt))
    assert "amd.com/gpu: '1'" in text or {"--gres=gpu:1", "--nproc-per-node=1"} <= set(text.split())


def test_run_on_several_nodes_is_named_once_and_resumes(prepare):
    made = [file_of(prepare(SLURM)) for _ in range(2)]
    names = [next(word for word in text.split() if word.startswith("--run=")) for text in made]
    assert names[0] != names[1]
    assert all("--resume=auto" in text for text in made)
    assert "--resume=old" in file_of(prepare(SLURM, resume="old"))


def test_settings_of_a_container_come_with_their_reasons(prepare):
    machine = {"cell": cells.GFX1100, "machine": sysfs.two_rx_7900_xt}
    contained = (replace(SLURM, under=under, image=IMAGE[under]) for under in ("docker", "apptainer", "pyxis"))
    for to in (KUBERNETES, *contained):
        rows = prepare(to, **machine).rows
        assert rows
        assert all(row.reason and row.source for row in rows)
    assert prepare(SLURM).rows == ()


def test_adapters_for_rdma_are_passed_where_requested(prepare):
    text = file_of(prepare(replace(SLURM, under="docker", rdma=True)))
    assert "/dev/infiniband/*" in text
    assert "--ulimit=memlock=-1:-1" in text
    assert "/dev/infiniband" not in file_of(prepare(replace(SLURM, under="docker")))
    for under in ("apptainer", "pyxis"):
        assert "/dev/infiniband" in file_of(prepare(replace(SLURM, under=under, image=IMAGE[under], rdma=True)))
    pod = replace(KUBERNETES, rdma=True, site=Site(claim="runs", rdma="rdma/hca"))
    assert "rdma/hca: '1'" in file_of(prepare(pod))


@pytest.mark.parametrize(
    ("to", "options", "code"),
    [
        (replace(KUBERNETES, site=Site()), {}, "RM422"),
        (KUBERNETES, {"data": "/srv/bars.csv"}, "RM426"),
        (KUBERNETES, {"data": "../bars.csv"}, "RM426"),
        (KUBERNETES, {"data": "."}, "RM426"),
        (KUBERNETES, {"recipe": __file__}, "RM426"),
        (KUBERNETES, {"callback": f"{__file__}:Mine"}, "RM426"),
        (replace(KUBERNETES, rdma=True), {}, "RM424"),
        (KUBERNETES, {"cell": cells.GFX1100}, "RM423"),
        (replace(KUBERNETES, cards=2, groups=None), {"cell": cells.GFX1100}, "RM423"),
        (replace(KUBERNETES, groups=None), {"cell": cells.GFX1100, "machine": sysfs.two_rx_7900_xt}, "RM423"),
        (SLURM, {"cell": cells.GFX1100}, "RM423"),
        (replace(SLURM, under="docker"), {"cell": cells.GFX1100}, "RM423"),
        (SLURM, {"run": "a b"}, "RM424"),
    ],
)
def test_job_that_cannot_be_sent_is_refused(prepare, to, options, code):
    with pytest.raises(RocmatrixError) as refused:
        prepare(to, **options)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (SlurmDestination, {"under": "dokcer"}),
        (SlurmDestination, {"nodes": 0}),
        (KubernetesDestination, {"processes": 0}),
        (KubernetesDestination, {"cards": -1}),
        (KubernetesDestination, {"user": "me:me"}),
        (SlurmDestination, {"cards": 2, "slurm": SlurmRequest(gres="gpu:8")}),
    ],
)
def test_wrong_value_is_refused(kind, wrong):
    with pytest.raises(RocmatrixError, match="RM404"):
        kind(**wrong)


@dataclass(frozen=True, kw_only=True)
class Recorder(Destination):
    """A destination that keeps what it is given; `refusal` is raised in place of a job."""

    refusal: Exception | None = None

    def job(self, submission):
        if self.refusal is not None:
            raise self.refusal
        return submission


def submitted(tmp_path, to, cell=cells.GFX1100, machine=sysfs.two_rx_7900_xt, **options):
    request = JobRequest(program=TRAIN, request=Request(), where="", options=options)
    hardware = read_hardware(machine(tmp_path / "machine"))
    return cluster.prepare(request, to, matrix=cells.MATRIX, cell=cell, hardware=hardware)


@pytest.mark.parametrize(
    ("cell", "machine", "named", "count"),
    [
        (cells.GFX1100, sysfs.two_rx_7900_xt, None, 2),
        (cells.GFX1100, sysfs.two_rx_7900_xt, 1, 1),
        (cells.GFX1100, sysfs.desktop_with_igpu, None, 1),
        (cells.GFX1100, sysfs.no_driver, 8, 8),
    ],
)
def test_cards_of_a_node_are_those_named_or_those_of_the_cell_here(tmp_path, cell, machine, named, count):
    assert submitted(tmp_path, Recorder(cards=named), cell=cell, machine=machine).cards == count


def test_cards_named_for_a_cpu_cell_are_refused(tmp_path):
    with pytest.raises(RocmatrixError, match="RM404"):
        submitted(tmp_path, Recorder(cards=8), cell=cells.CPU, machine=sysfs.no_driver)


def test_cards_of_another_kind_are_none_of_the_cells(tmp_path):
    with pytest.raises(RocmatrixError, match="RM423") as refused:
        submitted(tmp_path, Recorder(), cell=cells.GFX906)
    assert "gfx906" in refused.value.what


def test_name_and_resume_that_were_given_are_kept(tmp_path):
    given = submitted(tmp_path, Recorder(), run="mine", resume="other").job_request.options
    assert (given["run"], given["resume"]) == ("mine", "other")
    made = [submitted(tmp_path / str(number), Recorder(), run="", resume="").job_request.options for number in (1, 2)]
    assert all(re.fullmatch(r"train-\d{8}-\d{6}-[0-9a-f]{4}", each["run"]) for each in made)
    assert [each["resume"] for each in made] == ["auto", "auto"]


def test_refusal_of_an_emitter_becomes_rm424_and_a_coded_one_stays(tmp_path):
    with pytest.raises(RocmatrixError, match="RM424") as refused:
        submitted(tmp_path, Recorder(refusal=ValueError("no word for it")))
    assert refused.value.what == "no word for it"
    with pytest.raises(RocmatrixError, match="RM426"):
        submitted(tmp_path, Recorder(refusal=RocmatrixError("RM426", what="w")))


def test_container_is_the_cells_image_unless_the_nodes_call_it_otherwise():
    made = [
        cluster.spec(to, cells.CPU, places=Places(results="/r"), command=["train"])
        for to in (Recorder(), Recorder(image="registry.example/x@sha256:1"))
    ]
    assert [each.image for each in made] == [f"rocmatrix:{cells.CPU.name}", "registry.example/x@sha256:1"]


def test_command_of_a_container_carries_its_provenance(tmp_path):
    submission = submitted(tmp_path, Recorder(), run="mine")
    assert isinstance(submission, Submission)
    program, *flags = cluster.command(submission, {"epochs": "3"})
    assert program == "train"
    assert "--epochs=3" in flags
    assert f"--cell={cells.GFX1100.name}" in flags


def stand_in(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def scheduled(tmp_path):
    path = tmp_path / "runs" / "r.sbatch"
    return Job(argv=["sbatch", str(path)], environment=None, why="w", files={path: "#!/bin/sh\n"})


def test_job_is_written_and_handed_over(tmp_path, monkeypatch):
    stand_in(tmp_path, "sbatch", 'cat "$1"; echo 17')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert cluster.send(scheduled(tmp_path)) == "#!/bin/sh\n17"


def test_scheduler_that_is_not_here_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RocmatrixError, match=r"(?s)RM420.*sbatch"):
        cluster.send(scheduled(tmp_path))
    assert not (tmp_path / "runs").exists()


def test_refusal_of_a_scheduler_is_reported(tmp_path, monkeypatch):
    stand_in(tmp_path, "sbatch", "echo 'invalid partition' >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(RocmatrixError, match=r"(?s)RM421.*invalid partition"):
        cluster.send(scheduled(tmp_path))
