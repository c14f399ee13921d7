"""Commands in scripts and requirements files."""

import pytest

from rocmatrix.doctor.environment import scripts
from rocmatrix.doctor.environment.placement import misplaced
from tests.fixtures.cells import MATRIX


def rules(subjects):
    return [finding.rule for finding in misplaced(subjects, MATRIX)]


def of_script(tmp_path, text, name="run.sh"):
    path = tmp_path / name
    path.write_text(text)
    return rules(scripts.of_file(path))


def test_docker_run_in_a_script_is_read_over_continued_lines(tmp_path):
    text = "#!/bin/bash\n#SBATCH -N 1\nsudo docker run -it --rm \\\n  --device=/dev/dri --ipc=host \\\n  ubuntu bash\n"
    assert of_script(tmp_path, text) == ["kfd-not-given"]
    assert of_script(tmp_path, text.replace("--ipc", "--device /dev/kfd --ipc")) == []


def test_requirements_file_is_read_with_its_index(tmp_path):
    rows = "--extra-index-url https://download.pytorch.org/whl/rocm6.1\ntorch==2.6.0\ntorchvision == 0.19.0  # old\n"
    assert of_script(tmp_path, rows, "requirements.txt") == ["torchvision-of-another-torch", "rocm-release-old"]


def variables(tmp_path, text):
    path = tmp_path / "run.sh"
    path.write_text(text)
    return [(row.name, row.value) for row in scripts.of_file(path)[0].variables]


def test_variables_in_front_of_a_command_and_defaults_are_read(tmp_path):
    text = 'A=1 B="x y" python a.py C=3\nexport D="${D:-10.3.0}" E=2\nenv F=1 G=2 run\necho H=1\nI=$(date)\n'
    expected = [("A", "1"), ("B", "x y"), ("D", "10.3.0"), ("E", "2"), ("F", "1"), ("G", "2"), ("I", "$(date)")]
    assert variables(tmp_path, text) == expected


DRI = "--device=/dev/dri"


def test_start_is_read_through_variables_functions_and_arrays(tmp_path):
    for text in (
        f'IMAGE=rocm/app:1\nDEVICES="{DRI} --ipc=host"\ndocker run $DEVICES $IMAGE bash\n',
        f'ARGS=(\n  {DRI}\n  --ipc=host\n)\ndocker run "${{ARGS[@]}}" rocm/app:1 bash\n',
        f"ARGS=({DRI})\nARGS+=(--ipc=host)\nstart() {{\n  docker run ${{ARGS[@]}} rocm/app:1 bash\n}}\nstart\n",
        f'OPTS="{DRI}"\nOPTS+=" --ipc=host"\ndocker run ${{OPTS}} rocm/app:1\n',
    ):
        assert of_script(tmp_path, "#!/bin/bash\n" + text) == ["kfd-not-given"]


def test_variable_that_is_set_twice_is_not_certain(tmp_path):
    text = f"if nvidia; then\n  OPTS='--gpus all'\nelse\n  OPTS='{DRI}'\nfi\ndocker run $OPTS --ipc=host rocm/app:1\n"
    assert of_script(tmp_path, "#!/bin/bash\n" + text) == []


def test_hostile_scripts_come_to_an_end(tmp_path):
    for text in (
        "A=" + "(" * 50_000,
        "A=1\n" * 5_000,
        "${" * 50_000,
        'A="' * 20_000,
        " " * 100_000,
        "$(" * 50_000,
        "`a" * 50_001,
    ):
        assert of_script(tmp_path, "#!/bin/bash\n" + text) is not None


GROUP = "getent group render | cut -d: -f3"


@pytest.mark.parametrize(
    "group",
    [
        "$RENDER_GID",
        f"$({GROUP})",
        f'"$({GROUP})"',
        f"`{GROUP}`",
        "$(stat -c '%g' \"$(ls /dev/dri/renderD* | head -1)\")",
    ],
)
def test_group_that_the_host_is_requested_hides_no_missing_device(tmp_path, group):
    text = f"#!/bin/bash\nRENDER_GID=$({GROUP})\ndocker run {DRI} --ipc=host --group-add {group} rocm/app:1 bash\n"
    assert of_script(tmp_path, text) == ["kfd-not-given"]
    assert of_script(tmp_path, text.replace(DRI, f"{DRI} --device=/dev/kfd")) == []
