"""What a site asks for is checked, and decides where pods may run and what they take."""

from dataclasses import replace

import pytest
import yaml

from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.kubernetes_manifest import kubernetes_job
from tests.fixtures.pods import EMITTED, FULL, ONE, pod, spec


def test_cards_are_counted_and_a_cpu_cell_asks_for_none():
    def limits(placement):
        (container,) = pod(yaml.safe_load(kubernetes_job(spec(), placement)))["containers"]
        return container.get("resources")

    assert limits(ONE) == {"limits": {"amd.com/gpu": "2"}}
    assert limits(replace(ONE, cards=1)) == {"limits": {"amd.com/gpu": "1"}}
    assert limits(replace(ONE, cards=0)) is None
    assert limits(replace(ONE, cards=8, site=FULL)) == {
        "requests": {"cpu": "16", "memory": "64Gi"},
        "limits": {"cpu": "16", "memory": "64Gi", "amd.com/cpx_nps4": "8", "rdma/hca": "1"},
    }


def test_quota_that_counts_limits_finds_those_of_what_was_requested():
    assert Site(claim="runs", memory="64Gi").resources(0) == {
        "requests": {"memory": "64Gi"},
        "limits": {"memory": "64Gi"},
    }


@EMITTED
def test_site_decides_where_pods_may_run(emit, placement):
    document = yaml.safe_load(emit(spec(), replace(placement, site=FULL)))
    whole = pod(document)
    assert document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert (whole["imagePullSecrets"], whole["nodeSelector"]) == ([{"name": "hub"}], {"gpu": "mi300x"})
    assert whole["tolerations"] == [
        {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "x"},
        {"key": "any", "operator": "Equal", "value": "", "effect": "NoExecute"},
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"claim": "Runs"},
        {"pull_secrets": ("a b",)},
        {"node_selector": {"a": "b c"}},
        {"node_selector": {"": "b"}},
        {"tolerations": ("a:Never",)},
        {"cpu": "many"},
        {"memory": "64GB"},
        {"card": "amd.com/"},
        {"queue": "a/b"},
    ],
)
def test_name_that_the_interface_would_refuse_is_refused(wrong):
    with pytest.raises(ValueError, match="is not"):
        Site(**wrong)
