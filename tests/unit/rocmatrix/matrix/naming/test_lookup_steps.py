"""Each question that the lookup of a model asks, on SYNTHETIC names."""

from types import SimpleNamespace

import pytest

from rocmatrix.matrix.naming import lookup
from rocmatrix.matrix.naming.lookup import Index, Model, index_of
from rocmatrix.matrix.naming.text import Word, words_of


def model(*core, lines=(), chip=False, name="n", gfx="g"):
    return Model(name=name, gfx=gfx, core=core, lines=frozenset(lines), chip=chip)


@pytest.mark.parametrize(
    ("own", "typed", "fits"),
    [
        (model("100", lines=["rx"]), [], True),
        (model("100", lines=["rx"]), ["rx"], True),
        (model("100", lines=["rx"]), ["radeon"], True),
        (model("100", lines=["rx"]), ["instinct"], False),
        (model("100", lines=["rx", "radeon"]), ["ryzen"], False),
        (model("100", lines=["rx"]), ["pro"], True),
        (model("100", lines=["pro"]), ["rx"], False),
        (model("100", lines=["instinct"]), ["rx"], False),
        (model("100", lines=["radeon"]), ["rx"], True),  # of no line: any may stand before it
        (model("100", lines=["radeon"]), ["instinct"], True),
        (model("100", lines=["rx"], chip=True), ["instinct"], True),
        (model("100", lines=["rx"], chip=True), ["ryzen"], True),
        (model("100", lines=["ryzen"]), ["ryzen"], True),
        (model("100", lines=["ryzen"]), [], True),
        (model("100", lines=["ryzen"]), ["pro"], True),
        (model("100", lines=["ryzen"]), ["radeon"], False),
        (model("100", lines=["ryzen"]), ["rx"], False),
        (model("100", lines=["ryzen"]), ["instinct"], False),
        (model("100", lines=["ryzen", "ai"]), ["radeon", "ai"], True),  # as "AMD radeon AI max+395" was typed
        (model("100", lines=["ryzen", "ai"]), ["radeon"], False),
        (model("100", lines=["ryzen"]), ["radeon", "ai"], False),
        (model("100", lines=["ryzen", "ai"]), ["rx", "ai"], False),
        (model("vega", lines=["amd", "radeon", "rx"]), [], False),
        (model("vega", lines=["amd", "radeon", "rx"]), ["radeon"], False),
        (model("vega", lines=["amd", "radeon", "rx"]), ["rx"], True),
        (model("duo", lines=["radeon", "pro"]), ["rx"], False),
        (model("duo", lines=["radeon", "pro"]), ["pro"], True),
    ],
)
def test_lines_before_a_model_are_its_own_or_none(own, typed, fits):
    assert own.fits(frozenset(typed)) is fits


def test_chip_is_one_only_where_it_is_stated():
    assert Model(name="n", gfx="g", core=(), lines=frozenset()).chip is False
    assert [model(lines=lines).ryzen for lines in (["ryzen"], ["rx"])] == [True, False]


NAMES = (
    ("gfx1", ("Radeon RX 100", "Radeon RX 100 XT", "Big Chip", "Radeon", "RX 7"), ("Big Chip",)),
    ("gfx2", ("Ryzen AI 9 HX 370", "Ryzen AI Max+ 395", "Ryzen 7 5700G", "Ryzen AI 370 X 2"), ()),
)


def test_index_holds_each_model_by_its_words_joined_and_by_its_number():
    index = Index(NAMES)
    names = {core: [each.name for each in models] for core, models in index.models.items()}
    assert names == {
        ("100",): ["Radeon RX 100"],
        ("100", "xt"): ["Radeon RX 100 XT"],
        ("big", "chip"): ["Big Chip"],
        ("bigchip",): ["Big Chip"],
        ("7",): ["RX 7"],
        ("hx", "370"): ["Ryzen AI 9 HX 370"],
        ("370",): ["Ryzen AI 9 HX 370"],
        ("max", "395"): ["Ryzen AI Max+ 395"],
        ("395",): ["Ryzen AI Max+ 395"],
        ("5700", "g"): ["Ryzen 7 5700G"],
        ("370", "x", "2"): ["Ryzen AI 370 X 2"],
    }
    numbers = {number: [each.name for each in models] for number, models in index.numbers.items()}
    assert numbers == {
        "100": ["Radeon RX 100", "Radeon RX 100 XT"],
        "370": ["Ryzen AI 9 HX 370", "Ryzen AI 370 X 2"],
        "395": ["Ryzen AI Max+ 395"],
        "5700": ["Ryzen 7 5700G"],
    }
    assert index.longest == 3
    (big,) = index.models[("bigchip",)]
    assert (big.chip, big.gfx, big.lines) == (True, "gfx1", frozenset())
    assert (index.models[("100",)][0].chip, index.models[("100",)][0].lines) == (False, {"radeon", "rx"})


def test_index_of_architectures_holds_their_names_and_chips():
    known = {"gfx1": SimpleNamespace(names=("Radeon RX 100", "RX 200"), chips=["RX 200"])}
    models = index_of(known).models
    assert {core: (found[0].gfx, found[0].chip) for core, found in models.items()} == {
        ("100",): ("gfx1", False),
        ("200",): ("gfx1", True),
    }


def test_index_of_the_same_names_is_the_same():
    known = {"gfx1": SimpleNamespace(names=("Radeon RX 100",), chips=["Radeon RX 100"])}
    first = index_of(known)
    assert index_of(dict(known)) is first
    assert first.models[("100",)][0].chip is True
    other = {"gfx1": SimpleNamespace(names=("Radeon RX 100",), chips=[])}
    assert index_of(other).models[("100",)][0].chip is False


@pytest.mark.parametrize(
    ("core", "joined"),
    [
        (("strix", "halo"), ("strixhalo",)),
        (("big", "chip", "10", "xt"), ("bigchip", "10", "xt")),
        (("hx", "370"), ("hx", "370")),
        (("na", "vi", "10"), ("na", "vi", "10")),
        (("navy", "x", "10"), ("navyx", "10")),
        (("100", "xt"), ("100", "xt")),
    ],
)
def test_words_at_the_beginning_of_a_model_are_joined_where_they_are_words(core, joined):
    assert lookup._joined(core) == joined


def test_number_of_a_model_has_three_digits_and_is_bare_without_a_line():
    assert [lookup._numbered(typed) for typed in (("10",), ("100",), ("x", "100"), ("xyz",))] == [
        False, True, True, False
    ]  # fmt: skip
    assert lookup._bare(("100",), frozenset())
    assert lookup._bare(("100",), frozenset(["pro", "amd"]))
    assert not lookup._bare(("100", "xt"), frozenset())
    assert not lookup._bare(("xt",), frozenset())
    for line in ("radeon", "rx", "instinct", "ryzen", "ai"):
        assert not lookup._bare(("100",), frozenset([line]))


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["pro"], ["p"]),
        (["rx"], ["r"]),
        (["firepro"], ["r", "z"]),
        ([], ["r", "p", "z"]),
        (["radeon"], ["r", "p", "z"]),
        (["pro", "rx"], ["p"]),
    ],
)
def test_models_with_every_line_typed_are_preferred(lines, names):
    models = [model(lines=["rx"], name="r"), model(lines=["pro"], name="p"), model(lines=["ryzen"], name="z")]
    assert [each.name for each in lookup._preferred(models, frozenset(lines))] == names


def test_processor_without_pro_is_preferred_where_none_is_typed():
    models = [model(lines=["ryzen", "pro"], name="p"), model(lines=["ryzen"], name="z")]
    assert [each.name for each in lookup._preferred(models, frozenset())] == ["z"]
    assert [each.name for each in lookup._preferred(models, frozenset(["pro"]))] == ["p"]
    assert [each.name for each in lookup._preferred(models[:1], frozenset())] == ["p"]


@pytest.mark.parametrize(
    ("text", "at", "older"),
    [
        ("r7 250", 2, True),
        ("r9 270", 2, True),
        ("r7 2500", 2, False),
        ("r7 25", 2, False),
        ("r 7 250", 2, False),
        ("r8 250", 2, False),
        ("x7 250", 2, False),
        ("r7 abc", 2, False),
        ("7 250", 1, False),
        ("250 r7", 0, False),
    ],
)
def test_number_behind_a_class_of_2013_is_of_an_older_card(text, at, older):
    assert lookup._marked_as_older(words_of(text), at) is older


@pytest.mark.parametrize(
    ("text", "end", "chip", "more"),
    [
        ("100", 1, False, False),
        ("100 xt", 1, False, True),
        ("100 xt", 1, True, False),  # a variant of the same chip
        ("100xt", 1, False, True),
        ("100 foo", 1, False, False),
        ("100 gre", 1, False, True),
        ("100 max", 1, False, True),
        ("100 super", 1, False, True),
        ("100 abx", 1, False, True),
        ("100 abxy", 1, False, False),
        ("100 abcd", 1, False, False),
        ("100 rx", 1, False, False),
        ("100rx", 1, False, False),
        ("100 on", 1, False, False),
        ("100 cpx", 1, False, False),
        ("100cpx", 1, False, True),
        ("100on", 1, False, True),
        ("100 16", 1, False, False),
        ("100 160", 1, False, False),
        ("100 1600", 1, False, True),
        ("100 1600", 1, True, True),
        ("chip 16", 1, False, True),
        ("chip16", 1, True, True),
        ("chip foo", 1, True, False),
        ("chip xy", 1, True, True),
        ("m foo", 1, False, False),
    ],
)
def test_word_after_a_model_makes_another_one_where_it_is_a_part_of_it(text, end, chip, more):
    words = words_of(text)
    assert lookup._continued(words, end, (words[0].text,), chip=chip) is more


def test_letters_glued_to_letters_continue_no_model():
    assert not lookup._continued([Word(text="100"), Word(text="foo", glued=True)], 1, ("100", "m"), chip=False)
    assert lookup._continued([Word(text="100"), Word(text="foo", glued=True)], 1, ("m", "100"), chip=False)


@pytest.mark.parametrize(
    ("text", "used", "left"),
    [
        ("310 rx 100", {2}, []),
        ("rx 310 100", {2}, ["310"]),
        ("amd 310 100", {2}, ["310"]),
        ("310 100", {1}, ["310"]),
        ("310 amd 100", {2}, ["310"]),
        ("310 ati 100", {2}, ["310"]),
        ("7600 ab", {0}, []),
        ("rx 31 100", {2}, []),
        ("xt rx 100", {2}, ["xt"]),
        ("rx 100 gre", {1}, ["gre"]),
        ("rx 100 foo", {1}, []),
        ("v100", {1}, ["v"]),
        ("v100 200", {1, 2}, ["v"]),
        ("100 200", {0, 1}, []),
        ("v100", {0, 1}, []),
    ],
)
def test_words_left_over_look_like_a_part_of_a_model(text, used, left):
    assert lookup._unexplained(words_of(text), used) == left


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("hd 7600", True),
        ("vega 10", True),
        ("navi 10", True),
        ("polaris 10", True),
        ("v7600", True),
        ("abc7600", True),
        ("abcd7600", False),
        ("ab 7600", True),
        ("abc 7600", True),
        ("a 7600", False),
        ("abcd 7600", False),
        ("on 7600", False),
        ("on7600", True),
        ("rx 7600", False),
        ("rx7600", False),
        ("10 7600", False),
        ("ab cd", False),
    ],
)
def test_letters_before_a_number_are_a_part_of_it(text, prefix):
    assert lookup._prefix(*words_of(text)) is prefix


@pytest.mark.parametrize(
    ("text", "lines", "laptop"),
    [
        ("amd radeon rx 100", {"radeon", "rx"}, False),
        ("ati ai 100 laptop", set(), True),
        ("ryzen 100 mobile", {"ryzen"}, True),
    ],
)
def test_part_has_its_lines_and_the_form_of_its_card(text, lines, laptop):
    found = Index(NAMES).read(words_of(text))
    assert (found.lines, found.laptop) == (lines, laptop)


def names(text, **more):
    return [[each.name for each in models] for models in Index(NAMES).read(words_of(text), **more).hits]


@pytest.mark.parametrize(
    ("text", "more", "found"),
    [
        ("100", {"carried": frozenset(["rx"])}, [["Radeon RX 100"]]),
        ("100", {"carried": frozenset(["instinct"])}, []),
        ("100 100", {"carried": frozenset(["instinct"])}, []),
        ("instinct 100 rx 100", {}, []),
        ("xt", {}, []),
        ("xt", {"number": "100"}, [["Radeon RX 100 XT"]]),
        ("xt xt", {"number": "100"}, []),
        ("foo", {"number": "100"}, []),
        ("rx 100s", {}, [["Radeon RX 100"]]),
        ("rx 100 xts", {}, [["Radeon RX 100 XT"]]),
        ("big chips", {}, [["Big Chip"]]),
        ("bigchip 100", {}, [["Radeon RX 100"]]),
        ("max 395", {}, [["Ryzen AI Max+ 395"]]),
        ("395", {}, [["Ryzen AI Max+ 395"]]),
        ("ryzen ai 9 hx 370", {}, [["Ryzen AI 9 HX 370"]]),
        ("ryzen 5700", {}, []),
        ("5700", {}, [["Ryzen 7 5700G"]]),
        ("5700g", {}, [["Ryzen 7 5700G"]]),
        ("rx 7", {}, [["RX 7"]]),
        ("big radeon chip", {}, [["Big Chip"]]),
        ("370 x 2", {}, [["Ryzen AI 370 X 2"]]),
        ("r7 100", {}, [["RX 7"]]),
    ],
)
def test_longest_model_that_fits_is_taken(text, more, found):
    assert names(text, **more) == found


def test_letter_before_a_number_may_be_left_out_of_an_ai_pro_alone():
    cards = ("Radeon AI PRO R9700", "Radeon AI PRO R9700 X", "Radeon Pro W9700", "Ryzen AI PRO R9700")
    index = Index((("gfx1", cards, ()),))

    def left(lines, *typed):
        return [each.name for each in index._without_letters(typed, frozenset(lines))]

    assert left(["ai", "pro"], "9700") == left(["ai", "pro", "radeon"], "9700") == ["Radeon AI PRO R9700"]
    assert left(["ai", "pro"], "9700", "x") == ["Radeon AI PRO R9700 X"]
    assert left(["ai"], "9700") == left(["pro"], "9700") == []
    assert left(["ai", "pro"], "9800") == []
    hits = Index((("gfx1", cards[:3], ()),)).read(words_of("ai pro 9700")).hits
    assert [[each.name for each in found] for found in hits] == [["Radeon AI PRO R9700"]]


@pytest.mark.parametrize(
    ("typed", "one"),
    [
        (("100", "xts"), ("100", "xt")),
        (("100", "s"), ("100",)),
        (("100", "ss"), ("100", "s")),
        (("chip", "s"), None),
        (("100", "xt"), None),
        (("100", "200"), None),
        (("s",), None),
        (("chips",), None),
        (("a", "100", "s"), ("a", "100")),
        (("a", "b", "cs"), ("a", "b", "c")),
    ],
)
def test_plural_of_a_model_has_an_s_behind_letters_or_a_number(typed, one):
    assert lookup._singular(typed) == one


MIXED = Index((
    ("gfx1", ("Radeon RX 790 XT", "Radeon RX 790 GRE", "Radeon RX 45 XT", "Radeon RX 880"), ()),
    ("gfx2", ("Ryzen 9 790", "Ryzen 9 790X", "Ryzen 7 45", "Ryzen AI 12 34"), ()),
    ("gfx3", ("Radeon 880", "Chip 880"), ("Radeon 880", "Chip 880")),
))  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "lines", "found"),
    [
        (("790",), [], ["Ryzen 9 790", "Radeon RX 790 XT", "Radeon RX 790 GRE", "Ryzen 9 790X"]),
        (("790",), ["rx"], ["Ryzen 9 790", "Radeon RX 790 XT", "Radeon RX 790 GRE"]),
        (("790", "xt"), ["rx"], ["Radeon RX 790 XT"]),
        (("790", "xts"), ["rx"], ["Radeon RX 790 XT"]),
        (("790", "s"), ["ryzen"], ["Ryzen 9 790"]),
        (("790", "ys"), [], []),
        (("45",), ["rx"], ["Ryzen 7 45"]),  # two digits begin no model's name
        (("chip", "880"), [], ["Chip 880"]),
        (("880",), [], ["Radeon RX 880", "Radeon 880"]),
        (("34",), [], []),  # a processor is known by its first number
        (("12",), [], ["Ryzen AI 12 34"]),
    ],
)
def test_models_called_by_words_are_exact_ones_then_longer_then_processors(typed, lines, found):
    assert [each.name for each in MIXED._called(typed, frozenset(lines))] == found


def test_number_of_the_index_has_two_digits_or_more():
    index = Index((("gfx1", ("Radeon RX 790 XT", "Ryzen 7 45", "Ryzen AI 12 34", "RX 7"), ()),))
    assert sorted(index.numbers) == ["12", "45", "790"]


def test_line_begins_no_model():
    assert MIXED._at(words_of("rx 790 xt"), 0, frozenset()) == ([], 0)
    assert MIXED._at(words_of("790 rx xt"), 0, frozenset()) == ([MIXED.models[("790", "xt")][0]], 3)
    assert MIXED._at(words_of("790 yt"), 0, frozenset(["rx"])) == ([], 0)
    assert MIXED._at(words_of("foo"), 0, frozenset()) == ([], 0)


def test_letter_is_left_out_where_no_longer_name_begins_so():
    index = Index((("gfx1", ("AI PRO R970", "Radeon 980 XT", "AI PRO R980"), ()),))
    line = frozenset(["ai", "pro"])
    assert [each.name for each in index._called(("970",), line)] == ["AI PRO R970"]
    assert [each.name for each in index._called(("980",), line)] == ["Radeon 980 XT"]
