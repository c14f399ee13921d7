"""The line of a long command that a finding names."""

import pytest

from rocmatrix.cli.commands.common import known_matrix
from rocmatrix.cli.commands.doctor import linted
from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.doctor.environment.lint_input import Command, Subject
from rocmatrix.doctor.environment.shell.places import located

INDEX = "https://download.pytorch.org/whl"


@pytest.mark.parametrize(
    ("name", "text", "rule", "line"),
    [
        (
            "Dockerfile",
            "FROM python:3.13\nRUN apt-get update && \\\n    # two of them\n    echo PyTorch with ROCm 6.0 && \\\n"
            f"    pip install torch --index-url {INDEX}/rocm6.0 && \\\n    pip list\n",
            "python-without-wheel",
            5,
        ),
        (
            "Dockerfile",
            f"FROM rocm/pytorch:latest\nENV A=1 \\\n    TORCH_PIP='pip install torch --extra-index-url {INDEX}/rocm6.2'"
            "\nRUN true && \\\n    python -m $TORCH_PIP\n",
            "torch-index-next-to-pypi",
            3,
        ),
        (
            "Dockerfile",
            f"FROM a\nRUN <<EOF\nls\npip install torch==2.0.0 -i {INDEX}/rocm6.2\nEOF\n",
            "pair-never-built",
            4,
        ),
        (
            "Dockerfile",
            'FROM rocm/pytorch:latest\nRUN if a; then \\\n  pip install -e ".[b]"; else \\\n  pip install -e "."; fi\n',
            "torch-may-be-replaced",
            4,
        ),
        ("run.sh", "docker run \\\n  -e A=1 \\\n  --device=/dev/dri \\\n  rocm/app:1\n", "kfd-not-given", 3),
    ],
)
def test_finding_in_a_long_command_names_its_own_line(tmp_path, name, text, rule, line):
    (tmp_path / name).write_text(text)
    found = linted(recognise.subjects(tmp_path / name, shell={}), known_matrix())
    assert {one.where for one in found if one.rule == rule} == {f"{tmp_path / name}:{line}"}


@pytest.mark.parametrize(
    ("rows", "line"), [((), 3), (("a", "b"), 3), (("a", "b torch==2.9"), 4), (("# torch==2.9", "b"), 3)]
)
def test_finding_without_a_line_of_its_own_stays_where_it_is(rows, line):
    finding = LintFinding(
        rule="x", subject="", where="a:3", what="torch==2.9", kind="harmful", severity="note", truth="", instead="",
        source="",
    )  # fmt: skip
    one = Subject(name="a", commands=(Command(text="b", where="a:3", rows=rows),))
    assert [found.where for found in located([finding], [one])] == [f"a:{line}"]
