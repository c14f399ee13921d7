"""Options as typed become a scheduler's destination, and those of another scheduler are refused."""

import pytest

from rocmatrix.cli.options.command import known
from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.jobs.schedulers import scheduler
from rocmatrix.jobs.schedulers.kubernetes import KubernetesOptions
from rocmatrix.jobs.schedulers.slurm import SlurmOptions
from rocmatrix.runtime.errors import RocmatrixError

NODES = {"nodes": 2, "cards": 1}
CLAIM = {"claim": "c"}
SUBMIT = known()["submit"].options


def test_request_of_a_site_reaches_its_scheduler():
    words = {"modules": "slurm, apptainer/1.3", "account": "p", "cpus": 8, "memory": "64G", "time": "1:00", "qos": ""}
    destination = scheduler.destination("slurm", SlurmOptions(**NODES, **words))
    assert destination.slurm == SlurmRequest(
        modules=("slurm", "apptainer/1.3"), account="p", cpus=8, memory="64G", time_limit="1:00"
    )
    words = {"node_selector": "a=b, c=", "tolerations": "t", "pull_secrets": "s,u", "cpus": 8, "memory": "64Gi"}
    destination = scheduler.destination("kubernetes", KubernetesOptions(**CLAIM, rdma_resource="rdma/hca", **words))
    assert destination.site == Site(
        claim="c", node_selector={"a": "b", "c": ""}, tolerations=("t",), pull_secrets=("s", "u"), cpu="8",
        memory="64Gi", rdma="rdma/hca",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "wrong"),
    [
        ("kubernetes", {"memory": "64 GB"}),
        ("slurm", {"modules": "a;b"}),
        ("kubernetes", {"user": "root"}),
        ("slrum", {}),
        ("", {}),
        ("slurm", {"groups": "44"}),
        ("slurm", {"claim": "c"}),
        ("slurm", {"nodes": 0}),
        ("slurm", {"nodes": -1}),
        ("slurm", {"cpus": -3}),
        ("kubernetes", {"nodes": 0}),
        ("kubernetes", {"cpus": -3}),
        ("kubernetes", {"under": "docker"}),
        ("kubernetes", {"time": "1:00"}),
    ],
)
def test_setting_that_no_site_takes_is_refused(engine, wrong):
    options = SUBMIT(**(NODES | wrong))
    with pytest.raises(RocmatrixError, match="RM404"):
        scheduler.destination(engine, options)


def test_options_of_another_scheduler_at_their_default_are_taken():
    options = SUBMIT(**NODES, engine="kubernetes", claim="c")
    assert scheduler.destination("kubernetes", options).site == Site(claim="c")
