"""Commands in scripts and requirements files."""

from rocmatrix.doctor.environment import scripts
from rocmatrix.doctor.environment.placement import misplaced
from rocmatrix.matrix.loading import load
from tests.unit.rocmatrix.diagnosis.known import ROOT

MATRIX = load.load(ROOT)


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
