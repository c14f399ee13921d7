"""What a site's Slurm is asked for is checked word by word."""

import pytest

from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest


@pytest.mark.parametrize(
    ("request_", "options"),
    [
        ({}, ["--gres=gpu:2"]),
        ({"gres": "gpu:4"}, ["--gres=gpu:4"]),
        ({"gpus_per_node": "mi300x:8"}, ["--gpus-per-node=mi300x:8"]),
    ],
)
def test_cards_are_asked_for_once(request_, options):
    assert list(SlurmRequest(**request_).options(2)) == options


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition": "gpu\n#SBATCH --uid=0"},
        {"time_limit": "1:00 --uid=0"},
        {"account": "a b"},
        {"constraint": "a --uid=0"},
        {"gres": "gpu:mi300x"},
        {"gres": "gpu:1", "gpus_per_node": "1"},
        {"gpus_per_node": "0"},
        {"memory": "64GB"},
        {"modules": ("a; rm -r /",)},
    ],
)
def test_setting_that_a_site_cannot_request_is_refused(wrong):
    with pytest.raises(ValueError, match=r"line of #SBATCH|twice|number of cards"):
        SlurmRequest(**wrong)
