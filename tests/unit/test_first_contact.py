"""docs/first-contact.md: the program takes its commands, its names exist, and its simulated lines are printed."""

import re
import shlex
from pathlib import Path

import pytest
from invoke import Config
from invoke.parser import ParserContext

import tasks
from rocmatrix.cli.commands import doctor as doctor_command
from rocmatrix.cli.commands.common import choose, known_matrix
from rocmatrix.cli.commands.doctor import Doctor
from rocmatrix.cli.program import UnderscoreParser
from rocmatrix.host import hardware, topology
from rocmatrix.matrix.resolver.resolve import Request
from tests.fixtures import machines

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/first-contact.md").read_text()
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = sorted({line for _, block in BLOCKS for line in block.splitlines() if "./invokew " in line})
INLINE = sorted(set(re.findall(r"`(\./invokew [^`]+)`", TEXT)))
PLACES = {info.removeprefix("text "): block.splitlines() for info, block in BLOCKS if info.startswith("text ")}


@pytest.fixture(scope="module")
def contexts():
    return tasks.namespace.to_contexts(ignore_unknown_help=Config().tasks.ignore_unknown_help)


@pytest.mark.parametrize("line", [*COMMANDS, *INLINE])
def test_command_of_the_page_is_taken_by_the_program(contexts, line):
    words = shlex.split(line.partition("./invokew ")[2])
    parsed = UnderscoreParser(initial=ParserContext(), contexts=contexts).parse_argv(words)
    assert [context.name for context in parsed] == [None, words[0]]
    assert parsed.unparsed == []


@pytest.mark.parametrize("line", ["./invokew smok", "./invokew smoke --cards-of 1"])
def test_command_that_the_program_lacks_is_found(contexts, line):
    from invoke.exceptions import ParseError

    with pytest.raises(ParseError):
        UnderscoreParser(initial=ParserContext(), contexts=contexts).parse_argv(line.split()[1:])


def test_page_has_a_section_with_commands_for_each_place():
    assert set(PLACES) == {"two_rx_7900_xt", "mi50", "strix_halo", "eight_mi300x"}
    assert len(COMMANDS) > 30


def test_codes_checks_signatures_and_cells_of_the_page_exist():
    failures, errors = (ROOT / "docs/failures.md").read_text(), (ROOT / "docs/errors.md").read_text()
    checks = (ROOT / "docs/doctor.md").read_text()
    signatures = {
        name
        for name in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", TEXT)
        if name not in ("not-applicable", "linux-firmware")
    }
    assert [name for name in signatures if f"\n- [{name}](" not in failures] == []
    assert [code for code in set(re.findall(r"RM\d{3}", TEXT)) if f"\n## {code} " not in errors] == []
    assert [code for code in set(re.findall(r"\bD\d{3}\b", TEXT)) if f"### {code} " not in checks] == []
    for cell in set(re.findall(r"rocm[\d.]+-torch[\d.]+-gfx\w+", TEXT)):
        assert known_matrix().cell(cell).name == cell
    assert len(signatures) > 15


@pytest.mark.parametrize("place", sorted(PLACES))
def test_simulated_line_of_the_page_is_printed_on_that_machine(tmp_path, capsys, place):
    tree = getattr(machines, place)(tmp_path).root
    found = hardware.detect(tree)
    choose(known_matrix(), Request(gpu="auto"), found)
    printed = capsys.readouterr().err.splitlines() + topology.text(topology.picture(found)).splitlines()
    printed += doctor_command.host_lines(doctor_command._examined(Doctor(sysfs=str(tree)), None))
    assert [line for line in PLACES[place] if not any(each.startswith(line) for each in printed)] == []
