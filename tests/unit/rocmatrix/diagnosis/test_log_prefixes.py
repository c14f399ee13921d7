"""Whatever engines, launchers and terminals do to a log, the best match stays the same."""

import json
import random
import re
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmatrix.diagnosis import log_prefixes
from rocmatrix.diagnosis.log_prefixes import views
from rocmatrix.runtime.redaction import redacted
from tests.left_out import WHOLE, one_of
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, best

# Each is what one program puts before a line. They are those of docker compose, docker's json-file, the CRI, journald,
# dmesg, srun --label, torchrun, mpirun, Ray, BuildKit, kubectl and Python's logging.
PREFIXES = (
    "trainer-1  | ",
    "2026-11-21T10:00:00.123456789Z stderr F ",
    "Nov 21 10:00:00 node7 kernel: ",
    "Nov 21 10:00:00 node7 python[4242]: ",
    "[  246.947604] ",
    "[Sat Nov 21 10:00:00 2026] ",
    "<4>[    1.101433] ",
    "0: ",
    "12: ",
    "[default0]:",
    "[rank3]: ",
    "[rank0]:[rank0]: ",
    "[1,0]<stderr>:",
    "(RayTrainWorker pid=4242, ip=10.0.0.7) ",
    "#12 34.56 ",
    "[pod/job-0/trainer] ",
    "2026-11-21 10:00:00,123 - root - ERROR - ",
    "2026-11-21 10:00:00 [ERROR] ",
    "[2026-11-21 10:00:00,494] ",
    "10:00:00.123 ",
    "2026-11-22T10:00:00+0100 node7 kernel: ",
    "2026-11-22T10:00:00.123456+01:00 node7 python[42]: [   12.345678] ",
    "Sun 2026-11-22 10:00:00 CET node7 kernel: ",
    "1763802000.123456 node7 kernel: ",
    "[  123.456789 <    0.000012 >] node7 kernel: ",
    "kern  :err   : [  123.456789] ",
    "kern  :warn  : [Sun Nov 22 10:00:00 2026] ",
    "[Nov22 10:00] ",
    "[  +0.000123] ",
    "> ",
    "│ ",
    "\x1b[31m",
    "    ",
)
WIDTHS = (40, 79, 80, 120, 132)  # columns of a screen
WEAK = ("aftermath", "degraded", "note")  # kinds that come after any general answer
COLOURS = ("\x1b[0m", "\x1b[1;31m", "\x1b[38;5;196m", "\x1b[K")


def prefixed(text, prefix):
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def page(text):
    """Return a page in HTML that marks each word, with blanks that do not break."""
    rows = (" ".join(f'<span class="w1">{escape(word)}</span>' for word in row.split(" ")) for row in text.split("\n"))
    return "<html><body><pre>" + "<br>\n".join(rows).replace("</span> <", "</span>&nbsp;<") + "</pre></body></html>\n"


def wrapped(text, width):
    """Cut every line at a column, in the middle of words, as a terminal does."""
    return "\n".join(part for line in text.splitlines() for part in re.findall(f".{{1,{width}}}", line) or [""])


@pytest.mark.parametrize("prefix", one_of(PREFIXES, 12))
def test_prefix_hides_nothing(prefix):
    """A stop of CI tries a quarter of the signatures with each prefix, and each signature with a quarter of them."""
    chosen = SIGNATURES if WHOLE else SIGNATURES[PREFIXES.index(prefix) % 4 :: 4]
    missed = [one.id for one in chosen if best(prefixed(one.sample, prefix)) != one.id]
    assert missed == []


def test_redaction_hides_nothing():
    """A stop of CI tries every third signature: who shares a log gets the answer of who reads it at home."""
    chosen = SIGNATURES if WHOLE else SIGNATURES[::3]
    assert [one.id for one in chosen if best(redacted(one.sample, ())) != one.id] == []


def answers(one, *, cut):
    """Return what a wrapped line may lead to: its signature, where another line is not taken for an answer of its own.

    A general answer for the words "error" or "out of memory" comes before what is no failure, where a seam parts them.
    """
    general = {other.id for other in SIGNATURES if other.family and one.kind in WEAK}
    # A screen narrower than the prefix cuts the prefix itself, behind which an exception's message is not seen.
    return {one.id, *general, *({None} if one.uncaught and cut else ())}


@pytest.mark.parametrize("turn", one_of(range(20), 1))
def test_lines_wrapped_before_or_after_the_prefix_are_whole_again(turn):
    """A stop of CI tries each signature with one prefix and one width, in turn; all of the same for every run."""
    missed = []
    for number, one in enumerate(signature for signature in SIGNATURES if not signature.sample.startswith("#")):
        prefix, width = PREFIXES[(number + turn) % len(PREFIXES)], WIDTHS[(number + turn) % len(WIDTHS)]
        inside = best(prefixed(wrapped(one.sample, width), prefix))
        outside = best(wrapped(prefixed(one.sample, prefix), width))
        if inside not in answers(one, cut=False) or outside not in answers(one, cut=width < len(prefix)):
            missed.append((one.id, prefix, width, inside, outside))
    assert missed == []


@pytest.mark.parametrize("turn", one_of(range(20), 1))
def test_two_prefixes_hide_nothing(turn):
    missed = []
    for number, one in enumerate(SIGNATURES):
        outer, inner = PREFIXES[(number + turn) % len(PREFIXES)], PREFIXES[(7 * number + turn + 3) % len(PREFIXES)]
        if best(prefixed(prefixed(one.sample, inner), outer)) != one.id:
            missed.append((one.id, outer, inner))
    assert missed == []


@pytest.mark.parametrize("turn", one_of(range(6), 1))
def test_json_lines_hide_nothing(turn):
    """A message that is JSON itself or a comment is not wrapped: the seam within its quotes is never seen as one."""
    missed = []
    for number, one in enumerate(SIGNATURES):
        width = (None, 60, 120)[(number + turn) % 3]
        color = "\x1b[1;31m" if (number + turn) % 2 else ""
        text = wrapped(one.sample, width) if width and not one.sample.startswith(("#", '"', "{")) else one.sample
        rows = [{"log": f"{color}{line}\n", "stream": "stderr", "time": "2026-11-21T10:00:00.1Z"}
                for line in text.splitlines()]  # fmt: skip
        if best("".join(json.dumps(row) + "\n" for row in rows)) not in answers(one, cut=False):
            missed.append((one.id, width, color))
    assert missed == []


@pytest.mark.parametrize("seed", one_of(range(10), 1))
def test_colours_anywhere_hide_nothing(seed):
    chance, missed = random.Random(seed), []
    for one in SIGNATURES:
        text = list(one.sample)
        for _ in range(5):
            text.insert(chance.randrange(len(text) + 1), chance.choice(COLOURS))
        if best("".join(text)) != one.id:
            missed.append((one.id, "".join(text)))
    assert missed == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_another_encoding_hides_nothing(encoding):
    missed = [one.id for one in SIGNATURES if best(one.sample.encode(encoding, errors="replace")) != one.id]
    assert missed == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("RuntimeError: [enforce fail] connect [127.0.1.1]:\n3210: Connection refused\n", "gloo-connection-refused"),
        ("Callback: aborting with error : HSA_STATUS_\nERROR_INVALID_ISA: The instruction set\n", "hsa-invalid-isa"),
        ("ImportError: libGL.so.\n1: cannot open shared object file\n", "graphics-system-library-missing"),
    ],
)
def test_rest_of_a_wrapped_line_that_looks_like_a_prefix_is_kept(text, found):
    assert best(text) == found


def journal(sample, message):
    return "".join(
        json.dumps({"__CURSOR": "s=1", "MESSAGE": message(row), "_PID": "4"}) + "\n" for row in sample.split("\n")
    )


FORMS = {
    "journalctl -o json with colours": lambda text: journal(text, lambda row: list(f"\x1b[31m{row}".encode())),
    "journalctl -o json-pretty": lambda text: "".join(
        json.dumps({"MESSAGE": row, "_PID": "4"}, indent=8) + "\n" for row in text.split("\n")
    ),
    "journalctl -o verbose": lambda text: "".join(f"    PRIORITY=3\n    MESSAGE={row}\n" for row in text.split("\n")),
    "script": lambda text: text.replace("e", "ex\b \b"),
    "a progress bar": lambda text: "".join(f"\r 10%|##  | 1/10\r{row}\r\n" for row in text.split("\n")),
    "a page in HTML": page,
    "blanks that do not break": lambda text: text.replace(" ", "\u00a0"),
    "a pane with borders": lambda text: "".join(f"│ {row:<100} │\n" for row in wrapped(text, 100).split("\n")),
}


@pytest.mark.parametrize("form", FORMS)
def test_pasted_screen_or_journal_hides_nothing(form):
    missed = [one.id for one in SIGNATURES if best(FORMS[form](one.sample)) != one.id]
    assert missed == []


@pytest.mark.parametrize(
    "line",
    ["│ " * 300_000, "x\b" * 500_000, "</p><a " * 300_000, '"MESSAGE":[' + "1," * 500_000, "> " * 500_000],
)
def test_long_line_of_one_form_is_read(line):
    assert best(line + "\nRuntimeError: HIP error: invalid device function\n") == "hip-invalid-device-function"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_is_taken_off_and_kept_in_the_second_view(prefix):
    found = views(f"{prefix}Killed\n{prefix}Killed\n".encode())
    assert found[0] == b"Killed\nKilled\n"
    assert [view.count(b"\n") for view in found] == [2] * len(found)


def test_line_without_a_prefix_has_one_view():
    assert views(b"Killed\n\nHIP error\n") == (b"Killed\n\nHIP error\n",)
    assert views(b"") == (b"",)


@pytest.mark.parametrize(
    "line", [b"12 steps", b"10:0 done", b"rank a: 1", b"#x 1.5 a", b"kern err", b"[rank] 1", b"ERRORS 3", b"2026-1-1 a"]
)
def test_words_that_only_resemble_a_prefix_stay(line):
    assert views(line + b"\n")[0] == line + b"\n"


def test_message_of_a_json_line_stands_alone_with_its_fields_gone():
    line = b'{"log":"Killed\\n","stream":"stderr","time":"2026-11-21T10:00:00Z","n":3}\n'
    assert views(line)[0] == b"Killed\n"
    assert b"Killed" in views(b'{"other":"Killed"}\n')[0] and b"other" in views(b'{"other":"Killed"}\n')[0]


def test_journals_list_of_bytes_is_read_as_text_up_to_255():
    numbers = ", ".join(str(number) for number in b"Kil\nled") + ", 256, 999"
    (text, *_) = views(f'{{"MESSAGE" : [ {numbers} ]}}\n'.encode())
    assert b'"MESSAGE":"Killed"' in text  # a line end within would make two lines of one


@pytest.mark.parametrize("typed", [b"mak\b \bke", b"x\bmake", b"maxx\b \b\b \bke"])
def test_characters_typed_over_are_gone(typed):
    assert views(typed + b"\n")[0] == b"make\n"


@pytest.mark.parametrize(
    "text",
    [
        "NCCL INFO NET/IB : No device found.\n",
        "NCCL \x1b[36mINFO\x1b[0m NET/IB : No device found.\n",
        journal("NCCL INFO NET/IB : No device found.", lambda row: list(row.encode())),
    ],
)
def test_words_that_excuse_a_line_are_seen_through_colours_and_numbers(text):
    assert best(text) != "rdma-device-none"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b"a", b" ", b"\n", b"\b", b"\b \b"]), max_size=12).map(b"".join))
def test_characters_typed_over_are_those_that_an_expression_would_take(typed):
    expected = typed
    for _ in range(20):
        expected = re.sub(rb"[^\b\n]\x08(?: \x08)?", b"", expected)
    assert log_prefixes._without_typed_over(typed) == expected


@pytest.mark.parametrize("escape", ["\x1b", "\\u001b", "\\u001B", "\\U001B", "\\x1b", "\\x1B", "\\033", "^["])
def test_colour_is_gone_however_its_escape_is_written(escape):
    assert views(f"{escape}[31mred{escape}[0m\n".encode())[0] == b"red\n"


@pytest.mark.parametrize("tag", ["</span>", "<br>", "</td>", "</pre>", "</code>", "</div>", "</p>"])
def test_tags_are_gone_where_a_page_has_one_of_these(tag):
    assert views(f"<b>one{tag}\n".encode())[0] == b"one\n"


@pytest.mark.parametrize("border", ["\u2502", "\u2503", "\u2551"])
def test_border_at_the_end_of_a_line_is_gone(border):
    assert views(f"one {border}\n".encode())[0] == b"one\n"
