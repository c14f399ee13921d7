"""Values by kind, and what holds between them."""

import pytest

from rocmatrix.diagnosis.comparisons.typed import RELATIONS, typed


def none(_):
    return None


def values(kind, *texts):
    return [value for text in texts if (value := typed(kind, text, none)) is not None]


@pytest.mark.parametrize(
    ("kind", "text", "items", "order"),
    [
        ("version", "6.4.43484-123eb", {"6.4.43484-123eb"}, (6, 4, 43484)),
        ("kernel", "6.8.0-45-generic", {"6.8.0-45-generic"}, (6, 8, 0)),
        ("size", "64M", {str(64 << 20)}, (64 << 20,)),
        ("size", "80.5 GiB", {str(int(80.5 * (1 << 30)))}, (int(80.5 * (1 << 30)),)),
        ("size", "512", {"512"}, (512,)),
        ("words", "1000(user),44(video) render", {"1000", "user", "44", "video", "render"}, None),
        ("gfx", "gfx90a:sramecc+;gfx1100", {"gfx90a", "gfx1100"}, None),
        ("gfx", "9.0.10", {"gfx90a"}, None),
        ("gfx", "10.3.0", {"gfx1030"}, None),
        ("listed", "0,1,3", {"3"}, (3,)),
        ("highest", "0,3,1", {"0"}, (3,)),
    ],
)
def test_text_is_read_as_its_kind(kind, text, items, order):
    value = typed(kind, text, none)
    assert (value.items, value.order) == (items, order)


@pytest.mark.parametrize(
    ("kind", "text"), [("version", "none"), ("size", "unlimited"), ("gfx", "sm_90"), ("word", " ")]
)
def test_text_of_another_kind_is_no_value(kind, text):
    assert typed(kind, text, none) is None


def test_card_is_the_architecture_of_its_name():
    assert typed("card", "Instinct MI210", {"Instinct MI210": "gfx90a"}.get).items == {"gfx90a"}
    assert typed("card", "Radeon Graphics", none) is None


@pytest.mark.parametrize(
    ("kind", "left", "relation", "right", "parts", "holds"),
    [
        ("kernel", ["6.8.0-45"], "not in", ["6.8.0-40"], None, True),
        ("kernel", ["6.8.0-45"], "not in", ["6.8.0-40", "6.8.0-45"], None, False),
        ("version", ["7.0.51831"], "differs from", ["7.0.1"], 2, False),
        ("version", ["7.0.51831"], "differs from", ["7.2.1"], 2, True),
        ("version", ["6.8.0"], "older than", ["6.11"], 2, True),
        ("version", ["6.11.3"], "older than", ["6.11"], 2, False),
        ("version", ["3.14"], "newer than", ["3.13"], 2, True),
        ("version", ["3.13"], "newer than", ["3.13"], 2, False),
        ("version", ["2.7", "2.9"], "older than", ["2.8"], None, False),
        ("size", ["64M"], "less than", ["1G"], None, True),
        ("size", ["2G"], "less than", ["1G"], None, False),
        ("size", ["2G"], "more than", ["1G"], None, True),
        ("size", ["1G"], "more than", ["1G"], None, False),
        ("size", ["1G"], "at least", ["1G"], None, True),
        ("size", ["1M"], "at least", ["1G"], None, False),
        ("gfx", ["gfx1030"], "of another generation than", ["gfx1100"], None, True),
        ("gfx", ["gfx1030"], "of another generation than", ["gfx1031", "gfx1100"], None, False),
        ("gfx", ["gfx90a"], "of another generation than", ["gfx906"], None, False),
        ("gfx", ["gfx1030"], "not of every generation of", ["gfx1031", "gfx1100"], None, True),
        ("gfx", ["gfx1030"], "not of every generation of", ["gfx1031"], None, False),
        ("words", ["a b"], "is", ["b"], None, True),
        ("words", ["a b"], "is not", ["b"], None, False),
    ],
)
def test_relation_holds_or_not(kind, left, relation, right, parts, holds):
    assert RELATIONS[relation](values(kind, *left), values(kind, *right), parts) is holds
