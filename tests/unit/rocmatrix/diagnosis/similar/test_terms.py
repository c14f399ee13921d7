"""Terms of a text: words, names with their parts, numbers; nothing that differs from run to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis.similar.terms import terms

TEXTS = {
    "name of C++ with its parts": ("undefined hip::device", {"undefined", "hip::device", "hip", "device"}),
    "capitals": ("HIP Error", {"hip", "error"}),
    "path": ("/opt/rocm/bin", {"opt/rocm/bin", "opt", "rocm", "bin"}),
    "version and number": ("rocm 6.4.1 exit 139", {"rocm", "6.4.1", "exit", "139"}),
    "negative errno": ("ret = -12", {"ret", "-12"}),
    "address of memory": ("at 0x7f12ab34cd by", set()),
    "short number in hexadecimal": ("status 0x3", {"status", "x3"}),
    "common words": ("the card is not in the list", {"card", "list"}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_terms_of_a_text(name):
    text, expected = TEXTS[name]
    assert terms(text) == expected


@given(st.text(max_size=300))
def test_terms_do_not_depend_on_case_and_are_found_again_in_themselves(text):
    found = terms(text)
    assert found <= terms(text.upper().lower())
    assert all(term in terms(f" {term} ") for term in found)
