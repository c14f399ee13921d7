"""Build arguments before FROM, in the commands of a stage."""

import pytest

from rocmatrix.doctor.environment.dockerfile import of_dockerfile
from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.shell.build_arguments import outside_stage

BEFORE = "ARG ROCM=6.4\nARG TARGETS=gfx1100\nFROM rocm/dev-ubuntu-24.04:${ROCM}\n"


def found(tmp_path, text):
    path = tmp_path / "Dockerfile"
    path.write_text(text)
    notes = [note for stage in of_dockerfile(path) for note in stage.notes]
    return [(note.rule, note.what, int(note.where.rpartition(":")[2])) for note in notes]


@pytest.mark.parametrize(
    "run",
    [
        "RUN cmake -DAMDGPU_TARGETS=$TARGETS .",
        'RUN cmake -DAMDGPU_TARGETS="${TARGETS}" .',
        "RUN TARGETS=$TARGETS make",
        'RUN echo "it\'s for" && make A=${TARGETS%%,*}',
        "RUN echo $TARGETS > /etc/targets",
        "RUN <<END\nmake A=$TARGETS\nEND",
        "RUN make A=$TARGETS\nARG TARGETS\nRUN make B=$TARGETS",
        "RUN make A=$TARGETS\nRUN make B=$TARGETS",
    ],
)
def test_argument_before_from_is_empty_in_a_run_of_the_stage(tmp_path, run):
    assert found(tmp_path, f"{BEFORE}{run}\n") == [("argument-outside-stage", "$TARGETS", 4)]


@pytest.mark.parametrize(
    "run",
    [
        "ARG TARGETS\nRUN make A=$TARGETS",
        "ENV TARGETS=gfx1030\nRUN make A=$TARGETS",
        "RUN TARGETS=gfx1030; make A=$TARGETS",
        "RUN for TARGETS in a b; do make A=$TARGETS; done",
        "RUN make A=${TARGETS:-gfx1030} B=${TARGETS:+x}",
        "RUN awk '{print $TARGETS}' a && make A=\\$TARGETS",
        "RUN echo for $TARGETS && make",
        "RUN . /etc/os-release && make A=$TARGETS",
        "RUN --mount=type=secret,id=a,env=TARGETS make A=$TARGETS",
        'CMD ["run", "$TARGETS"]',
        "FROM a\nCOPY --from=0 /a /a\nRUN make A=$OTHER",
    ],
)
def test_argument_that_a_stage_has_or_does_not_need_is_let_be(tmp_path, run):
    assert found(tmp_path, f"{BEFORE}{run}\n") == []


def test_argument_of_a_stage_is_that_of_the_stages_built_on_it(tmp_path):
    text = f"{BEFORE.strip()} AS base\nARG TARGETS\nFROM base\nRUN make A=$TARGETS\n"
    assert found(tmp_path, text) == []
    other = text.replace("FROM base\n", "FROM ubuntu:24.04\n")
    assert found(tmp_path, other) == [("argument-outside-stage", "$TARGETS", 6)]


def test_names_that_the_builder_or_an_image_gives_are_let_be(tmp_path):
    text = "ARG PYTHON_VERSION=3.12\nARG HTTP_PROXY\nFROM python:${PYTHON_VERSION}\nRUN a $PYTHON_VERSION $HTTP_PROXY\n"
    assert found(tmp_path, text) == []


def test_name_that_images_with_torch_set_is_a_note():
    texts = ("make A=$PYTORCH_ROCM_ARCH", "make A=$TARGETS")
    names = {"PYTORCH_ROCM_ARCH", "TARGETS"}
    notes = [note for text in texts for note in outside_stage(Command(text=text, where="a:1"), names)]
    assert [note.severity for note in notes] == ["note", "warning"]


def test_hostile_commands_come_to_an_end():
    for text in ("$A" * 50_000, "${A" * 50_000, "'\"" * 50_000, "for " * 20_000 + "$A", "echo " * 20_000):
        assert list(outside_stage(Command(text=text, where="a:1"), {"A"})) is not None
