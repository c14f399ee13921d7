"""What each part of a typed name states, on the real architectures."""

import pytest

from rocmatrix.matrix.naming import reading
from rocmatrix.matrix.naming.lookup import Found, Index, Model, index_of
from rocmatrix.matrix.naming.reading import Reading, processor_of, read
from tests.fixtures.cells import MATRIX

ARCHITECTURES = MATRIX.architectures
A, B = frozenset(["gfx1100"]), frozenset(["gfx1100", "gfx1101"])


@pytest.mark.parametrize(
    ("more", "agreed", "architecture"),
    [
        ({}, set(), None),
        ({"sets": (A,)}, A, "gfx1100"),
        ({"sets": (A, B)}, A, "gfx1100"),
        ({"sets": (B,)}, B, None),
        ({"sets": (A, frozenset(["gfx906"]))}, set(), None),
        ({"sets": (A,), "open": ("xt",)}, A, None),
        ({"sets": (A,), "unserved": "gfx902"}, A, None),
        ({"sets": (A,), "other": "intel"}, A, "gfx1100"),
    ],
)
def test_architecture_is_the_one_that_every_part_allows(more, agreed, architecture):
    found = Reading(**more)
    assert (found.agreed, found.architecture) == (agreed, architecture)


@pytest.mark.parametrize(
    ("name", "rows", "unserved", "other"),
    [
        ("10de:2684", (), None, "10de"),
        ("[1002:744c]", (("1002:744c", "gfx1100"),), None, None),
        ("0x744C, 1002:66af", (("1002:744c", "gfx1100"), ("1002:66af", "gfx906")), None, None),
        ("1002:9999", (), None, None),
        ("1002:744c 1002:9999", (("1002:744c", "gfx1100"),), None, None),
        ("1002:744c 1002:13fe", (), "gfx1013", None),
        ("1002:0001 RX 7900 XT", (("Radeon RX 7900 XT", "gfx1100"),), None, None),
        ("1002:13fe", (), "gfx1013", None),
        ("gfx902", (), "gfx902", None),
        ("gfx1100 gfx902", (), "gfx902", None),
        ("Hawaii", (), "gfx701", None),
        ("Radeon HD 7770", (), "a card before GCN 3", None),
        ("gfx906", (("gfx906", "gfx906"),), None, None),
        ("rdna 3 gfx1102", (("gfx1102", "gfx1102"), ("rdna 3", "gfx1100"), ("rdna 3", "gfx1101"), ("rdna 3", "gfx1102"),
                            ("rdna 3", "gfx1103")), None, None),
        ("RX 7900 XT", (("Radeon RX 7900 XT", "gfx1100"),), None, None),
        ("RX 7900 XT, RX 7900 XT", (("Radeon RX 7900 XT", "gfx1100"),), None, None),
        ("gfx 1100", (("gfx1100", "gfx1100"),), None, None),
        ("gfx-90A", (("gfx90a", "gfx90a"),), None, None),
        ("gfx11.0.0", (("gfx1100", "gfx1100"),), None, None),
        ("gfx9.0.a", (("gfx90a", "gfx90a"),), None, None),
        ("gfx94X-dcgpu", (("gfx94x-dcgpu", "gfx942"),), None, None),
        ("gfx110X-igpu", (("gfx110x-igpu", "gfx1103"),), None, None),
        ("gfx110X-dgpu", (("gfx110x-dgpu", "gfx1100"), ("gfx110x-dgpu", "gfx1101"), ("gfx110x-dgpu", "gfx1102")),
         None, None),
        ("gfx 120X", (("gfx120x", "gfx1200"), ("gfx120x", "gfx1201")), None, None),
        ("gfx90X-dcgpu", (("gfx90x-dcgpu", "gfx908"), ("gfx90x-dcgpu", "gfx90a")), None, None),
        ("gfx12-generic", (("gfx12-generic", "gfx1200"), ("gfx12-generic", "gfx1201")), None, None),
        ("gfx9-4-generic", (("gfx9-4-generic", "gfx942"), ("gfx9-4-generic", "gfx950")), None, None),
        ("Ryzen Embedded V1605B", (), "gfx902", None),
        ("Ryzen Embedded R2314", (), "gfx902", None),
        ("V1500B", (), None, None),
        ("4090", (), None, "4090"),
        ("nothing of that kind", (), None, None),
    ],
)  # fmt: skip
def test_name_is_read_by_its_identifiers_else_by_its_words(name, rows, unserved, other):
    found = read(ARCHITECTURES, name)
    assert (found.rows, found.unserved, found.other) == (rows, unserved, other)


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("1002:744c", [{"gfx1100"}]),
        ("0x744C, 1002:66af", [{"gfx1100"}, {"gfx906"}]),
        ("gfx906 gfx1100", [{"gfx906"}, {"gfx1100"}]),
        ("RX 7900 XT / Instinct MI50", [{"gfx1100"}, {"gfx906"}]),
        ("RX 7900 XT rdna 3.5", [{"gfx1100"}, {"gfx1150", "gfx1151", "gfx1152", "gfx1153"}]),
        ("RX 6800", [{"gfx1030"}]),
        ("RX 6800 laptop", [{"gfx1030", "gfx1031", "gfx1032"}]),
        ("RX 6800, Instinct MI50 laptop", [{"gfx1030", "gfx1031", "gfx1032"}, {"gfx906"}]),
        ("RX 6800 XT laptop", [{"gfx1030"}]),
        ("Navi 31 laptop", [{"gfx1100"}]),
    ],
)
def test_part_of_a_name_allows_architectures(name, sets):
    assert list(map(set, read(ARCHITECTURES, name).sets)) == sets


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("RX 7900 XTZ", ("7900",)),
        ("RX 9999", ("9999",)),
        ("Graphics 780M XT", ("xt",)),
        ("RX 7900 XT 4444", ("7900", "xt", "4444")),
        ("board 310 RX 7900 XT", ()),
        ("9999 / RX 7900 XT", ()),
        ("rx 9999 / RX 7900 XT", ("9999",)),
        ("RX 9999 gfx1100", ()),
        ("Navi 31 / rx 9999", ()),
        ("8888 / 9999", ("8888", "9999")),
    ],
)
def test_words_that_no_model_explains_leave_a_name_open(name, words):
    assert read(ARCHITECTURES, name).open == words


@pytest.mark.parametrize(
    ("name", "processor"),
    [
        ("Ryzen 7 9999Z w/ Radeon 780M", "ryzen 7 9999z"),
        ("Ryzen 7 9999Z with Radeon 780M", "ryzen 7 9999z"),
        ("Ryzen 7 7840HS w/ Radeon 780M", None),
        ("Ryzen 7 9999Z", None),
        ("w/ Radeon 780M", None),
        ("with with Radeon", None),
    ],
)
def test_processor_next_to_its_graphics_is_named_where_no_list_has_it(name, processor):
    assert processor_of(ARCHITECTURES, name) == processor


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rdna", {"rdna": {"gfx1010", "gfx1011", "gfx1012"}}),
        ("rdna1", {"rdna1": {"gfx1010", "gfx1011", "gfx1012"}}),
        ("rdna-2", {"rdna-2": {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"}}),
        ("rdna 4", {"rdna 4": {"gfx1200", "gfx1201"}}),
        ("rdna 9", {}),
        ("cdna", {"cdna": {"gfx908"}}),
        ("cdna 2", {"cdna 2": {"gfx90a"}}),
        ("cdna3", {"cdna3": {"gfx942"}}),
        ("gcn 4", {"gcn 4": {"gfx803"}}),
        ("gcn3", {"gcn3": {"gfx803"}}),
        ("gcn", {}),
        ("gcn 5", {}),
        ("rx 7000 series", {"rx 7000 series": {"gfx1100", "gfx1101", "gfx1102"}}),
        ("radeon rx 9000", {"radeon rx 9000": {"gfx1200", "gfx1201"}}),
        ("6000 series", {"6000 series": {"gfx1030", "gfx1031", "gfx1032", "gfx1034"}}),
        ("5000-series", {"5000-series": {"gfx1010", "gfx1012"}}),
        ("7000", {}),
        ("radeon vega 8", {"radeon vega 8": {"gfx902", "gfx90c"}}),
        ("rdna 4 and vega 8", {"rdna 4": {"gfx1200", "gfx1201"}, "vega 8": {"gfx902", "gfx90c"}}),
    ],
)
def test_family_series_or_units_allow_the_architectures_of_it(text, found):
    assert {label: set(members) for label, members in reading._families(ARCHITECTURES, text)} == found


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("ryzen 5 5600", " ; ryzen ; "),
        ("ryzen 7 5700x", " ; ryzen ; "),
        ("ryzen 5 7600", "ryzen 5 7600"),
    ],
)
def test_processor_without_graphics_is_no_part_of_the_answer(text, read_as):
    assert reading._kept(index_of(ARCHITECTURES), text) == read_as


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("RX 7900 XT / XTX", [["Radeon RX 7900 XT"], ["Radeon RX 7900 XTX"]]),
        ("RX 7900 XT / RX 6800 / XT", [["Radeon RX 7900 XT"], ["Radeon RX 6800"], ["Radeon RX 6800 XT"]]),
        ("RX 7900 XT / board / XTX", [["Radeon RX 7900 XT"], ["Radeon RX 7900 XTX"]]),
        ("RX 9070, 7600", [["Radeon RX 9070"], ["Radeon RX 7600"]]),
        ("RX 9070, Ryzen 7600", [["Radeon RX 9070"], ["Ryzen 5 7600"]]),
        ("RX 9070, board, 7600", [["Radeon RX 9070"], ["Radeon RX 7600"]]),
    ],
)
def test_part_without_a_line_or_a_number_has_those_of_the_part_before(name, models):
    assert [[model.name for model in found] for found in read(ARCHITECTURES, name).models] == models


@pytest.mark.parametrize(
    ("name", "words", "architecture"),
    [
        ("780M", (), "gfx1103"),
        ("GeForce 780M", ("geforce",), None),
        ("GTX 780M", ("gtx", "gtx"), None),
        ("NVIDIA 780M / Radeon 780M", ("nvidia",), None),
        ("Radeon 780M, GTX 780M", ("gtx",), None),
        ("GeForce graphics 780M", ("geforce",), None),
        ("Snapdragon Phoenix", ("snapdragon",), None),
        ("Radeon Phoenix, Intel Arc", (), "gfx1103"),
        ("NVIDIA Navi 31 rx 9999", (), "gfx1100"),
    ],
)
def test_chip_that_another_maker_may_mean_leaves_a_name_open(name, words, architecture):
    found = read(ARCHITECTURES, name)
    assert (found.open, found.architecture) == (words, architecture)


def test_desktop_card_in_a_laptop_may_be_its_m_or_s_and_no_other_model_may():
    cards = ("Radeon RX 100", "Radeon RX 100M", "Radeon RX 100S", "Radeon RX 100 XT", "Radeon RX 100 XT M", "RX 400M")
    rest = ("Radeon RX 200", "Radeon RX 200M", "Radeon RX 300", "Radeon RX 300S")
    index = Index((("gfx1", (*cards, *rest), ("Radeon RX 200",)), ("gfx2", ("Ryzen 7 400",), ())))

    def forms(*core):
        return [model.name for model in reading._with_laptop_forms(index, tuple(index.models[core]))]

    assert forms("100") == ["Radeon RX 100", "Radeon RX 100M", "Radeon RX 100S"]
    assert forms("300") == ["Radeon RX 300", "Radeon RX 300S"]
    assert forms("100", "xt") == ["Radeon RX 100 XT"]
    assert forms("200") == ["Radeon RX 200"]  # a chip
    assert forms("400") == ["Ryzen 7 400"]


class Parts:
    """An index that only writes down what it is asked, and answers by the lines that are carried."""

    def __init__(self, **found):
        self.found, self.queries = found, []

    def read(self, words, carried=frozenset(), number=None):
        self.queries.append((carried, number))
        return self.found["carried" if carried else "alone"]


@pytest.mark.parametrize(
    ("carried", "with_lines", "alone", "answer", "typed"),
    [
        ({"rx"}, ["card"], ["other"], ["card"], [({"rx"}, "7")]),
        ({"rx"}, [], ["card"], ["card"], [({"rx"}, "7"), (set(), "7")]),
        ({"rx"}, [], ["processor"], [], [({"rx"}, "7"), (set(), "7")]),
        ({"rx"}, [], [], [], [({"rx"}, "7"), (set(), "7")]),
        (set(), [], [], [], [(set(), "7")]),
        (set(), [], ["card"], ["card"], [(set(), "7")]),
    ],
)
def test_part_is_read_by_itself_where_lines_before_it_find_nothing(carried, with_lines, alone, answer, typed):
    def found(names):
        lines = {"processor": frozenset(["ryzen"])}
        kinds = [Model(name=name, gfx="g", core=("1",), lines=lines.get(name, frozenset())) for name in names]
        return Found(hits=[kinds] if kinds else [])

    index = Parts(carried=found(with_lines), alone=found(alone))
    part = reading._part(index, [], carried=frozenset(carried), number="7")
    assert [model.name for models in part.hits for model in models] == answer
    assert index.queries == [(frozenset(lines), number) for lines, number in typed]
