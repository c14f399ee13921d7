"""A recording of asciinema is read as the text that was on the screen."""

import json

import pytest

from rocmatrix.diagnosis.intake import recording
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, best

HEADERS = ('{"version": 2, "width": 120, "height": 30}', '{"version":3,"term":{"cols":120,"rows":30}}')


def recorded(text, size, header=HEADERS[0]):
    """Return a recording whose events end anywhere, as output comes in pieces."""
    typed = text.replace("\n", "\r\n")
    events = [[at * 0.1, "o", typed[at : at + size]] for at in range(0, len(typed), size)]
    rows = [events[0], [0.1, "i", "q"], *events[1:], [9, "m", "mark"], {"x": 1}]
    return "\n".join([header, *map(json.dumps, rows), "[1.5, "]) + "\n"


@pytest.mark.parametrize("header", HEADERS)
def test_recording_in_pieces_hides_nothing(header):
    chosen = SIGNATURES[HEADERS.index(header) :: 4]
    assert [one.id for one in chosen if best(recorded(one.sample, 37, header)) != one.id] == []


@pytest.mark.parametrize("head", [b'{"version": 1, "width": 80}', b'{"log":"a"}', b"[1, 2]", b""])
def test_other_file_is_no_recording(head):
    assert not recording.is_recording(head)


def test_event_without_output_is_left_out():
    assert b"".join(recording.played(iter([recorded("a\nb", 2).encode()]))) == b"a\r\nb"
    assert b"".join(recording.played(iter([b"[" * 100_000 + b"\n"]))) == b""
