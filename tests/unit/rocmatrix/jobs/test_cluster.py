"""A job for a scheduler: made from what this machine has or from what is told, refused with a code otherwise."""

import shlex
from dataclasses import replace

import pytest
import yaml

from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.host.hardware import survey
from rocmatrix.jobs import cluster as submit
from rocmatrix.jobs import job
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import TRAIN
from rocmatrix.jobs.runner import Job
from rocmatrix.jobs.schedulers.kubernetes import KubernetesDestination
from rocmatrix.jobs.schedulers.slurm import SlurmDestination
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT
from tests.fixtures import cells, sysfs

SLURM = SlurmDestination(nodes=2)
KUBERNETES = KubernetesDestination(nodes=2, groups=(44, 992), site=Site(claim="runs"))


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    """Return a function that makes the job of a machine; the native one is made without an environment."""

    def native_job(job_request, **_):
        argv = ["/opt/python", "-P", "-m", "trainer", "train", *job.flags(job_request.options)]
        return Job(argv=argv, environment={"PYTHONPATH": "/checkout", "PYTHONSAFEPATH": "1", "A": "b"}, why="w")

    monkeypatch.setattr(job, "native_job", native_job)

    def prepare(to, cell=cells.CPU, machine=sysfs.no_driver, **options):
        options = {"output": str(tmp_path / "runs"), **options}
        job_request = JobRequest(program=TRAIN, request=Request(), where="", options=options)
        hardware = survey(machine(tmp_path / "machine"))
        return submit.prepare(job_request, to, matrix=cells.MATRIX, cell=cell, hardware=hardware)

    return prepare


def file_of(made):
    ((path, text),) = made.files.items()
    assert str(path) in shlex.join(made.argv)
    return text


def test_slurm_gets_the_native_command_behind_torchrun(prepare, tmp_path):
    made = prepare(SLURM, run="r", epochs="3")
    assert made.argv == ["sbatch", "--parsable", str(tmp_path / "runs" / "r.sbatch")]
    text = file_of(made)
    assert "-m -- trainer train" in text
    assert {"--run=r", "--epochs=3", "--resume=auto"} <= set(text.split())
    assert f"export PYTHONPATH={ROOT}\n" in text
    assert "export A=" not in text  # the shell of whoever submits stays here


def test_rank_count_is_one_a_card_unless_another_is_given(prepare):
    machine = {"cell": cells.GFX1100, "machine": sysfs.two_rx_7900_xt}
    assert {"--gres=gpu:2", "--nproc-per-node=2"} <= set(file_of(prepare(SLURM, **machine)).split())
    told = replace(SLURM, processes=3, cards=4)
    assert {"--gres=gpu:4", "--nproc-per-node=3"} <= set(file_of(prepare(told, **machine)).split())


@pytest.mark.parametrize("to", [replace(KUBERNETES, cards=1), replace(SLURM, under="docker", cards=1)])
def test_fewer_cards_than_are_here_can_be_asked_for(prepare, to):
    text = file_of(prepare(to, cell=cells.GFX1100, machine=sysfs.two_rx_7900_xt))
    assert "amd.com/gpu: '1'" in text or {"--gres=gpu:1", "--nproc-per-node=1"} <= set(text.split())


def test_containers_on_several_nodes_meet_on_the_nodes_network(prepare):
    machine = {"cell": cells.GFX1100, "machine": sysfs.two_rx_7900_xt}
    two = file_of(prepare(replace(SLURM, under="docker"), **machine))
    one = file_of(prepare(replace(SLURM, under="docker", nodes=1), **machine))
    assert "--network=host" in two
    assert "SOCKET_IFNAME" not in two
    assert "--network=none" in one
    assert "GLOO_SOCKET_IFNAME=lo" in one
    assert "apptainer exec" in file_of(prepare(replace(SLURM, under="apptainer"), **machine))


@pytest.mark.parametrize(("nodes", "kind"), [(1, "Job"), (2, "TrainJob")])
def test_kubernetes_gets_a_job_or_a_train_job(prepare, nodes, kind):
    made = prepare(replace(KUBERNETES, nodes=nodes, image="registry.example/x@sha256:0"), run="My_Run.1")
    assert made.argv[:2] == ["kubectl", "apply"]
    document = yaml.safe_load(file_of(made))
    assert (document["kind"], document["metadata"]["name"]) == (kind, "my-run-1")
    assert "--run=My_Run.1" in file_of(made)


def test_run_on_several_nodes_is_named_once_and_resumes(prepare):
    made = [file_of(prepare(SLURM)) for _ in range(2)]
    names = [next(word for word in text.split() if word.startswith("--run=")) for text in made]
    assert names[0] != names[1]
    assert all("--resume=auto" in text for text in made)
    assert "--resume=old" in file_of(prepare(SLURM, resume="old"))


def test_settings_of_a_container_come_with_their_reasons(prepare):
    machine = {"cell": cells.GFX1100, "machine": sysfs.two_rx_7900_xt}
    for to in (KUBERNETES, replace(SLURM, under="docker"), replace(SLURM, under="apptainer")):
        rows = prepare(to, **machine).rows
        assert rows
        assert all(row.reason and row.source for row in rows)
    assert prepare(SLURM).rows == ()


def test_pod_runs_as_the_images_user_or_as_named(prepare):
    assert "runAsUser: 10001" in file_of(prepare(KUBERNETES))
    text = file_of(prepare(replace(KUBERNETES, user="1234:5678")))
    assert "runAsUser: 1234" in text
    assert "runAsGroup: 5678" in text


@pytest.mark.parametrize("groups", [(992,), (44, 109), ()])
def test_machine_without_cards_sends_the_given_facts_of_the_nodes(prepare, groups):
    made = prepare(replace(KUBERNETES, cards=4, groups=groups), cell=cells.GFX1100)
    trainer = yaml.safe_load(file_of(made))["spec"]["trainer"]
    assert trainer["resourcesPerNode"] == {"limits": {"amd.com/gpu": "4"}}
    assert trainer["numProcPerNode"] == 4
    said = "\n".join(line.strip() for line in file_of(made).splitlines())
    assert "\n".join(f"- {gid}" for gid in groups) in said
    assert ("supplementalGroups" in said) == bool(groups)


@pytest.mark.parametrize("under", ["docker", "apptainer"])
def test_login_node_without_cards_sends_to_nodes_that_have_some(prepare, under):
    to = replace(SLURM, under=under, cards=2)
    assert "--gres=gpu:2" in file_of(prepare(to, cell=cells.GFX1100))
    typed = replace(SLURM, under=under, slurm=SlurmRequest(gres="gpu:mi300x:8"))
    assert {"--gres=gpu:mi300x:8", "--nproc-per-node=8"} <= set(file_of(prepare(typed, cell=cells.GFX1100)).split())


def test_data_and_a_recipe_of_a_shared_folder_reach_a_container_of_slurm(prepare, tmp_path):
    recipe = tmp_path / "my.yaml"
    recipe.write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    code = tmp_path / "mine.py"
    code.touch()
    own = {"recipe": str(recipe), "callback": f"{code}:Mine"}
    made = prepare(replace(SLURM, under="docker"), data=str(link / "bars.csv"), **own)
    text = file_of(made)
    assert f"source={link}/bars.csv,target=/data/bars.csv,readonly" in text  # not where the link leads to here
    assert f"source={recipe},target=/recipe/my.yaml,readonly" in text
    assert f"source={code},target=/callbacks/0/mine.py,readonly" in text
    assert {"--data=/data/bars.csv", "--recipe=/recipe/my.yaml"} <= set(text.split())
    assert "--callback=/callbacks/0/mine.py:Mine" in text


def test_data_of_a_pod_is_a_path_on_a_claim(prepare):
    made = prepare(replace(KUBERNETES, nodes=1, site=Site(claim="runs", data_claim="sets")), data="bars/2025.csv")
    assert "bars/2025.csv on claim sets" in made.why
    text = file_of(made)
    assert "subPath: bars/2025.csv" in text
    assert "claimName: sets" in text
    assert "--data=/data/2025.csv" in text


def test_adapters_for_rdma_are_passed_where_asked_for(prepare):
    text = file_of(prepare(replace(SLURM, under="docker", rdma=True)))
    assert "/dev/infiniband/*" in text
    assert "--ulimit=memlock=-1:-1" in text
    assert "/dev/infiniband" not in file_of(prepare(replace(SLURM, under="docker")))
    assert "/dev/infiniband" in file_of(prepare(replace(SLURM, under="apptainer", rdma=True)))
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


@pytest.mark.parametrize("under", ["docker", "apptainer"])
def test_pretrained_folder_and_joined_file_reach_a_container_of_slurm(prepare, tmp_path, under):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    made = prepare(replace(SLURM, under=under), model=str(link / "llama"), join=str(tmp_path / "vix.csv"))
    text = file_of(made)
    assert {"--model=/data/.model/llama", "--join=/data/.join/vix.csv"} <= set(text.replace("\\", " ").split())
    for origin, target in ((link / "llama", "/data/.model/llama"), (tmp_path / "vix.csv", "/data/.join/vix.csv")):
        assert (f"source={origin},target={target},readonly" in text) or (f"{origin}:{target}:ro" in text)


def test_pretrained_folder_of_a_pod_is_a_path_on_the_claim_of_the_data(prepare):
    to = replace(KUBERNETES, nodes=1, site=Site(claim="runs", data_claim="sets"))
    text = file_of(prepare(to, data="bars/2025.csv", model="models/llama"))
    assert text.count("claimName: sets") == 1
    assert {"subPath: models/llama", "subPath: bars/2025.csv"} <= {line.strip(" -") for line in text.splitlines()}
    assert "--model=/data/.model/llama" in text
    with pytest.raises(RocmatrixError, match=r"RM426[\s\S]*--model names /srv/llama"):
        prepare(to, data="bars/2025.csv", model="/srv/llama")
