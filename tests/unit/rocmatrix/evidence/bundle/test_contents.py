"""Parts of a bundle are cut to their bounds at the starts of lines."""

import json

import pytest

from rocmatrix.evidence.bundle import archive, contents
from rocmatrix.evidence.bundle.identity import Identity
from rocmatrix.evidence.record import Verdict
from tests.fixtures.evidence import record
from tests.left_out import one_of

CELL = "rocm7.2-torch2.12.1-gfx1100"


@pytest.mark.parametrize(("lines", "line"), [(700, "step {} loss 0.5"), (24_000, "{}")])
def test_log_of_a_record_keeps_its_end_and_states_what_is_cut(lines, line):
    text = "".join(f"{line.format(number)}\n" for number in range(lines))
    part = contents.record(record("smoke", cell=CELL, log=text), Identity(), number=1)
    kept = json.loads(part.text)["log_end"]
    whole = text.splitlines()
    cut = kept[0] == contents.BEGINNING
    assert kept[cut:] == whole[-len(kept) + cut :]
    assert cut == (lines > 700)
    assert cut or len(kept) == lines
    assert part.size <= contents.RECORD_BYTES + 2 * contents.TAIL_BYTES
    assert part.size > contents.TAIL_BYTES // 3


def test_record_whose_fields_are_too_large_keeps_its_log():
    wide = tuple(Verdict(probe=f"p{n}", status="pass", summary="ü" * 4000) for n in range(60))
    found = json.loads(
        contents.record(record("smoke", cell=CELL, verdicts=wide, log="the end\n"), Identity(), number=1).text
    )
    assert found["log_end"] == ["the end"]
    assert "bytes" in found["left_out"]


def test_list_and_mapping_that_are_cut_state_how_much_is_left_out():
    many = {"list": [*range(400)], "mapping": {str(n): n for n in range(1000, 1400)}}
    found = json.loads(contents.data("x.json", many, Identity()).text)
    assert found["list"] == ["[100 of 400 are left out]", *range(100, 400)]
    assert found["mapping"].pop("left_out") == "[100 of 400 are left out]"
    assert len(found["mapping"]) == 300


def test_log_with_as_many_letters_more_as_were_cut_has_its_marker():
    name = "x" * 3  # <name> has as many letters more as the first line has
    text = "ab\n" + name + "\n"
    assert contents._tail(text, Identity(names=(name,)), cut=True) == f"{contents.BEGINNING}\n<name>\n"


@pytest.mark.parametrize(
    "name", one_of(["log_end", "doctor", "versions", "records", "beginning", "smoke", "path", "json"], 2)
)
def test_bundle_of_a_host_with_a_word_of_ours_as_its_name_is_written(name):
    who = Identity(names=(name,))
    held = record("smoke", cell=CELL, log="z\n" * 140_000)
    parts = [contents.data("doctor.json", {"versions": 1}, who), contents.record(held, who, number=1)]
    archive.checked(parts, who)
    assert json.loads(parts[1].text)


def test_log_that_was_cut_in_a_token_shows_no_half_of_it(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("hf_" + "q" * (4 * contents.TAIL_BYTES) + "\nthe end\n")
    assert contents.log(log, Identity()).text == "[the beginning is left out]\nthe end\n"
