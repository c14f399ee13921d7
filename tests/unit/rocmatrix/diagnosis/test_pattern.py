"""Patterns are squeezed like the texts they are for, hold fixed text, and take a bounded number of steps."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis import pattern
from tests.left_out import WHOLE
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, scanner

SECONDS = 2.0  # a single pass takes milliseconds; a pattern that backtracks without bound takes hours


@pytest.mark.parametrize(
    ("text", "squeezed"),
    [
        ("HIP error: out of memory", "HIPerror:outofmemory"),
        (r"reason\s*:\s+GPU Hang", "reason:GPUHang"),
        (r"Cannot read .*Tensile\S*\.dat", r"Cannotread.{0,200}Tensile.{0,200}\.dat"),
        (r"pid [\d, ]+ killed", r"pid[\d,]{1,80}killed"),
        ("version [`']GLIBC_[\\d.]+' not", r"versionGLIBC_[\d.]{1,80}not"),
        (r"detected\.[\s\S]{0,40}?failure", r"detected\..{0,40}?failure"),
        ("module 'torch' has no", "moduletorchhasno"),
        (r"device \\mnt\\gpu", "devicemntgpu"),
    ],
)
def test_white_space_quotes_and_backslashes_go(text, squeezed):
    assert pattern.parse(text).squeezed == squeezed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(abcdef+)+", "inside another"),
        ("(?:a{2,9}bcdefg){2,9}", "inside another"),
        ("abcdefg{3,}", "no upper bound"),
        (r"\w+", "fixed text"),
        ("abcd", "fixed text"),
        ("abcdefg|x", "fixed text"),
        ("^abcdefg", "no meaning"),
        ("abc\\bdefg", "no meaning"),
        ("(abcdefg", "no regular expression"),
        (r"(abcdef)\1", "reference"),
        ("abcdefg.{0,5000}", "may span"),
    ],
)
def test_pattern_that_could_run_away_or_match_anything_is_refused(text, why):
    with pytest.raises(pattern.PatternError, match=why):
        pattern.parse(text)


def test_alternatives_each_give_their_own_fixed_text():
    assert pattern.parse("(?:first way|second way)").literals == {b"firstway", b"secondway"}


@given(st.text(alphabet="abc \n\t'\"`\\ABC", max_size=60))
def test_squeezing_twice_changes_nothing(text):
    once = pattern.squeeze(text.encode())
    assert pattern.squeeze(once) == once
    assert not set(once) & set(pattern.DROPPED)


def seconds_on_hostile_text(found):
    literal = max(found.literals, key=len)
    almost = found.squeezed.encode()[:20].lower()
    hostile = [literal * 400, (literal + b"a1.:_(" * 60) * 40, (almost + literal) * 200, b"a" * 20_000 + literal]
    began = time.process_time()
    for text in hostile:
        list(found.compiled.finditer(text[:20_000]))
    return time.process_time() - began


def test_patterns_do_not_run_away_on_adversarial_text():
    slow = [found.text for one in SIGNATURES for found in one.patterns if seconds_on_hostile_text(found) >= SECONDS]
    assert slow == []


def test_log_of_nothing_but_fixed_texts_takes_time_in_proportion_to_its_length():
    literals = sorted({literal for one in SIGNATURES for found in one.patterns for literal in found.literals})
    block = b" ".join(literals[:: 1 if WHOLE else 5])

    def seconds(blocks):
        began = time.process_time()
        scanner().scan([block * blocks + b"\n"])
        return time.process_time() - began

    seconds(1)  # patterns are compiled when first needed
    assert seconds(4) < 2 * 4 * seconds(1)  # time by the square of the length is 16 times


@pytest.mark.parametrize("text", ["HIP Error: [A-F]{2}", r"\S{3}\W\D[^\sX]{1,3}Error", "(?:Runtime|Value)Error: NaN"])
def test_pattern_in_small_letters_matches_what_one_that_ignores_case_does(text):
    line = b"hip error: AF x HIP ERROR: ab | ab3-zyxwerror | ab3-zwerror | ValueError: nan; runtimeerror: NAN"
    small = pattern.squeeze(line)
    found = [match.span() for match in pattern.parse(text).compiled.finditer(small)]
    other = re.compile(pattern.parse(text).squeezed.encode(), re.IGNORECASE)
    assert found == [match.span() for match in other.finditer(small)] != []
