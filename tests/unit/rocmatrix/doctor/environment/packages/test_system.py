"""What apt and dnf are asked for in an image for AMD cards."""

import pytest

from rocmatrix.doctor.environment import dockerfile, lint, rules
from rocmatrix.doctor.environment.files import correct
from rocmatrix.doctor.environment.packages.system import found
from rocmatrix.doctor.environment.placement import misplaced
from tests.fixtures.cells import MATRIX
from tests.unit.rocmatrix.diagnosis.known import ROOT

BASE = "FROM rocm/dev-ubuntu-24.04:6.4\n"


def of(folder, text, name="Dockerfile"):
    path = folder / name
    path.write_text(text)
    return [(row.rule, row.where.rpartition(":")[2]) for one in dockerfile.of_dockerfile(path) for row in found(one)]


@pytest.mark.parametrize(
    ("call", "asks"),
    [
        ("apt-get install git", True),
        ("apt install --no-install-recommends git", True),
        ("sudo apt-get install git", True),
        ("apt-get install -y git", False),
        ("apt-get -y install git", False),
        ("apt-get -yq install git", False),
        ("apt-get install -qq git", False),
        ("apt-get install --yes git", False),
        ("yes | apt-get install git", False),
        ("apt-get clean", False),
    ],
)
def test_install_of_apt_asks_without_yes(tmp_path, call, asks):
    assert of(tmp_path, f"{BASE}RUN apt-get update && {call}\n") == ([("apt-asks", "2")] if asks else [])


def test_install_of_apt_asks_nothing_where_yes_is_assumed(tmp_path):
    text = (
        BASE
        + "RUN echo 'APT::Get::Assume-Yes \"true\";' > /etc/apt/apt.conf.d/a\nRUN apt-get update && apt-get install a\n"
    )
    assert of(tmp_path, text) == []


def linted(path):
    subjects = dockerfile.of_dockerfile(path)
    return (*lint.lint(subjects, rules.load(ROOT)), *misplaced(subjects, MATRIX))


def test_yes_is_added_by_fix_and_nothing_else(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text(BASE + "RUN apt-get update \\\n && apt-get install --no-install-recommends \\\n git\n")
    found_one = correct.correction(path, linted(path))
    correct.write(found_one, linted)
    assert path.read_text() == BASE + "RUN apt-get update \\\n && apt-get install -y --no-install-recommends \\\n git\n"


@pytest.mark.parametrize(
    ("run", "lost"),
    [
        ("export HSA_OVERRIDE_GFX_VERSION=10.3.0", True),
        ("cd /app && export A=b", True),
        ("source /opt/venv/bin/activate", True),
        ("conda activate rocm", True),
        ("export A=b && make", False),
        ("cd /app && make", False),
        ("export PATH=$PATH:/opt/rocm/bin", True),
        ("export ROCM=$(hipconfig -R)", True),
        ("export ROCM=$(hipconfig -R) && make", False),
        ("echo export A=b > /etc/profile.d/a.sh", False),
    ],
)
def test_export_of_a_shell_ends_with_it(tmp_path, run, lost):
    assert of(tmp_path, f"{BASE}RUN {run}\n") == ([("lost-with-the-shell", "2")] if lost else [])


def test_upgrade_changes_what_the_tag_stands_for(tmp_path):
    assert of(tmp_path, BASE + "RUN apt-get update && apt-get upgrade -y\n") == [("base-upgraded", "2")]
    assert of(tmp_path, BASE + "RUN apt-get update && pip install --break-system-packages -U pip\n") == []
    assert of(tmp_path, "FROM python:3.12\nRUN apt-get update && apt-get upgrade -y\n") == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (BASE + "RUN apt-get install -y git\n", "2"),
        (BASE + "RUN apt-get update\nRUN apt-get install -y git\n", None),
        (BASE + "RUN add-apt-repository -y ppa:a/b && apt-get install -y git\n", None),
        (BASE + "RUN curl -fsSL https://deb.nodesource.com/setup_22.x | bash - && apt-get install -y nodejs\n", None),
        (f"{BASE[:-1]} AS a\nRUN apt-get update\nFROM a\nRUN apt-get install -y git\n", None),
        ("FROM me/rocm-base:1\nRUN apt-get install -y git\n", None),
    ],
)
def test_install_needs_package_lists(tmp_path, text, line):
    assert of(tmp_path, text) == ([("apt-without-lists", line)] if line else [])


def test_rocm_of_a_distribution_need_not_be_that_of_the_files_name(tmp_path):
    text = "FROM fedora:43\nRUN dnf -y install make 'rocm-*' hipblas\n"
    assert of(tmp_path, text, "Dockerfile.rocm-6.4.4") == [("rocm-of-the-distribution", "2")]
    assert of(tmp_path, text, "Dockerfile.rocm") == []
    amd = "FROM fedora:43\nRUN echo https://repo.radeon.com/rocm/rhel9/6.4.4/main > a\nRUN dnf -y install hipblas\n"
    assert of(tmp_path, amd, "Dockerfile.rocm-6.4.4") == []


@pytest.mark.parametrize(
    ("image", "name", "gone"),
    [
        ("rocm/dev-ubuntu-24.04:6.4", "libgl1-mesa-glx", True),
        ("rocm/pytorch:rocm7.1_ubuntu24.04_py3.12_pytorch_release_2.7.1", "python3-distutils", True),
        ("rocm/dev-ubuntu-22.04:6.4", "libgl1-mesa-glx", False),
        ("rocm/dev-ubuntu-24.04:6.4", "libgl1", False),
        ("rocm/pytorch:latest", "libgl1-mesa-glx", False),
    ],
)
def test_package_that_a_release_has_no_more_is_an_error(tmp_path, image, name, gone):
    text = f"FROM {image}\nRUN apt-get update && apt-get install -y git \\\n    {name} && ls\n"
    assert of(tmp_path, text) == ([("package-gone", "2")] if gone else [])


def test_package_that_is_gone_is_replaced_by_fix(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text(f"{BASE}RUN apt-get update && apt-get install -y \\\n    libgl1-mesa-glx \\\n    git\n")
    correct.write(correct.correction(path, linted(path)), linted)
    assert path.read_text() == f"{BASE}RUN apt-get update && apt-get install -y \\\n    libgl1 \\\n    git\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("FROM ubuntu:24.04\nRUN pip install numpy\n", "2"),
        ("FROM rocm/dev-ubuntu-24.04:6.4\nRUN python3 -m pip install numpy && pip3 install b\n", "2"),
        ("FROM debian:bookworm-slim\nRUN true\nRUN pip3 install -r a.txt\n", "3"),
        ("FROM ubuntu:22.04\nRUN pip install numpy\n", None),
        ("FROM ubuntu:24.04\nRUN pip install --break-system-packages numpy\n", None),
        ("FROM ubuntu:24.04\nENV PIP_BREAK_SYSTEM_PACKAGES=1\nRUN pip install numpy\n", None),
        ("FROM ubuntu:24.04\nRUN python3 -m venv /a && /a/bin/pip install numpy\n", None),
        ("FROM ubuntu:24.04\nENV PATH=/opt/venv/bin:$PATH\nRUN pip install numpy\n", None),
        ("FROM ubuntu:24.04\nRUN pip install --target /a numpy\n", None),
        ("FROM ubuntu:24.04\nRUN uv pip install --system numpy\n", None),
        ("FROM python:3.12\nRUN pip install numpy\n", None),
        ("FROM rocm/pytorch:latest\nRUN pip install numpy\n", None),
    ],
)
def test_pip_into_the_python_of_the_distribution_is_reported_once(tmp_path, text, line):
    found = [row for row in of(tmp_path, text, name="Dockerfile.rocm") if row[0] == "python-of-the-distribution"]
    assert found == ([("python-of-the-distribution", line)] if line else [])
