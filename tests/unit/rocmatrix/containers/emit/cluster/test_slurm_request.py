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
    ("request_", "cards"),
    [
        ({"gres": "gpu:7900xt:2"}, 2),
        ({"gres": "gpu:6900xt:1,nvme:1"}, 1),
        ({"gpus_per_node": "7900xtx:4"}, 4),
        ({"gpus_per_node": "8"}, 8),
        ({"gres": "gpu:8"}, 8),
    ],
)
def test_cards_of_a_type_that_begins_with_a_digit_are_counted(request_, cards):
    assert SlurmRequest(**request_).cards == cards


@pytest.mark.parametrize("memory", ["64G", "64gb", "512000", "1T", "0"])
def test_memory_as_users_of_slurm_write_it_is_passed_on(memory):
    assert f"--mem={memory}" in list(SlurmRequest(memory=memory).options(1))


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
        {"memory": "64 GB"},
        {"memory": "64GiB"},
        {"gres": "gpu:7900xt"},
        {"gpus_per_node": "8:8"},
        {"modules": ("a; rm -r /",)},
    ],
)
def test_setting_that_a_site_cannot_request_is_refused(wrong):
    with pytest.raises(ValueError, match=r"line of #SBATCH|twice|number of cards"):
        SlurmRequest(**wrong)
