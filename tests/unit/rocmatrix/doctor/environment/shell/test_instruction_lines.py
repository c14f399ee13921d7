"""Lines of a Dockerfile: what goes on over a gap, and what is no instruction."""

import pytest

from rocmatrix.doctor.environment import dockerfile
from rocmatrix.doctor.environment.shell import instruction_lines

LOST = "FROM a\nRUN sed -i 's/a/b/' x\n    sed -i 's/c/d/' x\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LOST, "3"),
        ("FROM a\nRUN apt-get update\n&& apt-get install -y b\n", "3"),
        ("FROM a\nRUN apt-get update \\\n && apt-get install -y b\n", None),
        ("FROM a\nRUN apt-get install \\\n\n  # why\n  b\n", None),
        ("FROM a\nRUN <<A cat && cat <<-B\nx\nA\n\tsed y\n\tB\nUSER b\n", None),
        ("FROM a\nADD <<'EOF' /x\nhello y\nEOF\n", None),
        ("FROM a\nRUN cat <<EOF > x\nsed y\n", None),  # it has no end: what is inside is not known
        ("# syntax = devthefuture/dockerfile-x\nFROM a\ninclude b\n", None),
        ("# syntax=docker/dockerfile:1.7\n" + LOST, "4"),
        ("# escape=`\nFROM a\nRUN a `\n b\n", None),
        ("FROM a\n{% if x %}\nsed\n{% endif %}\n", None),
        ("from a\nrun b\n", None),
        ("FROM a\nRUN echo $((1 << 2))\nUSER b\n", None),
        ("FROM a\nRUN cat <<< text\nUSER b\n", None),
        ("FROM a\nINCLUDE b\n", None),  # of another front end, which the command line names
    ],
)
def test_command_in_place_of_an_instruction_is_an_error(text, line):
    found = [(one.rule, one.where.rpartition(":")[2]) for one in instruction_lines.unknown(text, "Dockerfile")]
    assert found == ([("instruction-unknown", line)] if line else [])


def test_instruction_goes_on_behind_an_empty_line_and_a_comment(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text("FROM rocm/pytorch:a\nRUN pip install \\\n\n  # the newest\n  xformers==1 \\\n  torch\nENV A=1\n")
    (stage,) = dockerfile.of_dockerfile(path)
    assert [command.text.split() for command in stage.commands] == [["pip", "install", "xformers==1", "torch"]]
    assert [(row.name, row.where.rpartition(":")[2]) for row in stage.variables] == [("A", "7")]


def test_other_lines_stay_where_they_are():
    text = "FROM a\n\n# b\nRUN c \\\n\n d\n"
    assert instruction_lines.without_gaps(text) == "FROM a\n\n# b\nRUN c \\\n\\\n d\n"
