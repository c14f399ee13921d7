"""Dockerfiles are read with the line of every variable."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmatrix.doctor.environment import dockerfile
from rocmatrix.runtime.errors import RocmatrixError

DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG ROCM=6.3
FROM --platform=linux/amd64 ubuntu:24.04 AS base
ARG ROCM
ARG EXTRA=1
ENV A=1 \\
    # between the lines
    B="two words" \\
    C=$EXTRA
RUN apt-get update && python3 -m pip install -U "torch==2.5.1" torchvision \\
    --index-url https://download.pytorch.org/whl/rocm${ROCM} ; true
RUN <<END
uv pip install torch==2.4.1+rocm6.0
END
FROM base
ENV D old form
CMD ["torchrun", "--backend", "hccl"]
"""


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_dockerfile_gives_its_stages_variables_and_pairs(tmp_path):
    path = write(tmp_path, "Dockerfile", DOCKERFILE)
    base, last = dockerfile.of_dockerfile(path)
    assert [(row.name, row.value, row.where) for row in base.variables] == [
        ("A", "1", f"{path}:6"),
        ("B", "two words", f"{path}:8"),
        ("C", "1", f"{path}:9"),
    ]
    assert [(p.torch, p.rocm, p.where) for p in base.pairs] == [
        ("==2.5.1", "6.3", f"{path}:10"),
        ("==2.4.1", "6.0", f"{path}:12"),
    ]
    assert (base.torch, base.rocm) == ("2.5.1", "6.3")
    assert (last.torch, last.variables[-1].value, last.commands[0].text) == (
        "2.5.1",
        "old form",
        "torchrun --backend hccl",
    )


@pytest.mark.parametrize(
    ("command", "pairs"),
    [
        ("pip install torch --index-url https://mirror.example/whl/rocm6.2", [("", "6.2")]),
        ("pip3 install -i https://x/whl/rocm6.2/ torch==2.5.1", [("==2.5.1", "6.2")]),
        ("pip install --index-url=https://x/whl/rocm6.2 'torch>=2.5,<3'", [("<3,>=2.5", "6.2")]),
        ("pip install --pre torch --index-url https://x/whl/nightly/rocm6.4", []),
        ("pip install torch==2.5.0.dev20240912+rocm6.2 --index-url https://x/whl/nightly/rocm6.2", []),
        ("pip install torch==2.5.1 --index-url https://x/whl/cpu", []),
        ("pip download torch --index-url https://x/whl/rocm6.2", []),
        ("conda install torch -c https://x/whl/rocm6.2", []),
        ("pip install 'unclosed", []),
    ],
)
def test_pip_command_gives_torch_and_rocm(command, pairs):
    assert [(p.torch, p.rocm) for p in dockerfile.installed(command, "here")] == pairs


PIECES = st.sampled_from(
    ["FROM x", "FROM x AS y", "ENV A=1", "ENV A", "ENV =", "ENV A='", "ARG B", "ARG B='", "RUN <<E", "E", "\\", "CMD [",
     "RUN pip install torch==", "CMD [1, null]", "# c", "", "\u0000", "COPY <<X /y", "ENV A=${B:-${C}}"]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=8))
def test_dockerfile_of_any_text_fails_in_no_other_way(tmp_path, lines):
    path = write(tmp_path, "Dockerfile", "\n".join(lines))
    try:
        assert dockerfile.of_dockerfile(path)
    except RocmatrixError as error:
        assert error.code == "RM311"


def test_file_that_never_ends_is_refused():
    with pytest.raises(RocmatrixError) as caught:
        dockerfile.read_text(Path("/dev/zero"))
    assert caught.value.code == "RM310"


def test_values_that_are_put_into_one_another_do_not_grow_without_bound():
    known: dict[str, str] = {"A0": "x" * 100}
    for number in range(1, 6):
        known[f"A{number}"] = dockerfile.substituted(f"$A{number - 1}" * 60, known)
    assert max(map(len, known.values())) < 1 << 20


def test_variable_that_names_itself_is_put_in_once(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text("FROM a\n" + "".join(f"ENV PATH=${{PATH}}:/opt/{number}\n" for number in range(40)))
    (stage,) = dockerfile.of_dockerfile(path)
    assert stage.variables[0].value == "${PATH}" + "".join(f":/opt/{number}" for number in range(40))
