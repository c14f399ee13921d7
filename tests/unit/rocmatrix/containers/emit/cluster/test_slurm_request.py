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
def test_cards_are_requested_once(request_, options):
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
    ("word", "line"),
    [
        ("exclude=n7,n[8-9]", "--exclude=n7,n[8-9]"),
        ("--hint=nomultithread", "--hint=nomultithread"),
        ("exclusive", "--exclusive"),
        ("licenses=scratch:1", "--licenses=scratch:1"),
        ("mail-user=a.b@uni.example", "--mail-user=a.b@uni.example"),
        ("error=err/%x-%j.log", "--error=err/%x-%j.log"),
        ("mem-per-gpu=60G", "--mem-per-gpu=60G"),
    ],
)
def test_further_options_of_a_site_are_passed_on_in_its_own_words(word, line):
    assert list(SlurmRequest(further=(word,)).options(0)) == [line]


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("nodes=2", "set by the script"),
        ("--export=ALL", "set by the script"),
        ("array=1-4", "set by the script"),
        ("account=a", "an option of its own here: --account"),
        ("mem=64G", "an option of its own here: --memory"),
        ("time=1:00", "an option of its own here: --time"),
        ("gpus-per-node=8", "an option of its own here: --gpus-per-node"),
        ("gpus=8", "an option of its own here: --cards"),
        ("-x", "no option of sbatch"),
        ("exclude=n7;reboot", "no option of sbatch"),
        ("exclude=n7\n#SBATCH", "no option of sbatch"),
        ("exclude=$(id)", "no option of sbatch"),
    ],
)
def test_option_that_the_script_or_this_program_has_is_refused_with_the_reason(word, why):
    with pytest.raises(ValueError, match=why):
        SlurmRequest(further=(word,))


def test_job_takes_the_first_free_of_several_partitions():
    assert "--partition=mi2104x,mi2508x" in list(SlurmRequest(partition="mi2104x,mi2508x").options(0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition": "gpu\n#SBATCH --uid=0"},
        {"partition": "gpu,"},
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
    with pytest.raises(ValueError, match=r"line of #SBATCH|twice|number of cards|--(memory|time) takes"):
        SlurmRequest(**wrong)


@pytest.mark.parametrize("limit", ["30", "30:00", "4:00:00", "1-12", "1-12:30", "1-12:30:00", "UNLIMITED"])
def test_time_limit_in_the_forms_of_sbatch_is_taken(limit):
    assert f"--time={limit}" in SlurmRequest(time_limit=limit).options(0)


@pytest.mark.parametrize("limit", ["4h", "90min", "1:2:3:4", "1 day", "-5", "4:00:00;reboot", ""])
def test_time_limit_that_sbatch_would_refuse_is_refused_with_its_flag(limit):
    with pytest.raises(ValueError, match=r"--time takes 4:00:00, .* not "):
        SlurmRequest(time_limit=limit)


def test_memory_in_another_unit_is_refused_with_its_flag():
    with pytest.raises(ValueError, match="--memory takes a size such as 64G, not '64gigs'"):
        SlurmRequest(memory="64gigs")
