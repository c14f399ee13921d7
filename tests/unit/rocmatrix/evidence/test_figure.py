"""Numbers of a record as figures, each with its spread where one was measured."""

from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.evidence.figure import COLUMNS, SPREAD, figures
from rocmatrix.evidence.record import Number

NAMES = st.sampled_from(["fp16", "fp32", "bandwidth"])
NUMBERS = st.dictionaries(st.tuples(st.sampled_from(["blas", "memory"]), NAMES, st.booleans()), st.floats(1, 9))


def numbers(values):
    return [
        Number(probe=probe, name=name + SPREAD * spread, value=value, unit="%" if spread else "TFLOP/s")
        for (probe, name, spread), value in values.items()
    ]


@given(NUMBERS)
def test_figure_has_the_spread_of_its_own_probe_and_name(values):
    found = {(figure.probe, figure.name): figure for figure in figures(numbers(values))}
    measured = {(probe, name): value for (probe, name, spread), value in values.items() if not spread}
    assert {key: found[key].value for key in measured} == measured
    for probe, name in measured:
        assert found[probe, name].spread == values.get((probe, name, True))


@given(NUMBERS)
def test_spread_without_its_figure_is_shown_and_none_is_shown_twice(values):
    shown = [(figure.probe, figure.name) for figure in figures(numbers(values))]
    alone = {(p, n + SPREAD) for p, n, spread in values if spread and (p, n, False) not in values}
    assert len(set(shown)) == len(shown)
    assert {key for key in shown if key[1].endswith(SPREAD)} == alone


def test_row_of_a_figure_without_a_spread_has_a_dash():
    (figure,) = figures([Number(probe="blas", name="fp16", value=123.456, unit="TFLOP/s")])
    assert dict(zip(COLUMNS, figure.row, strict=True)) == {
        "BENCHMARK": "blas", "FIGURE": "fp16", "MEDIAN": "123.5", "UNIT": "TFLOP/s", "SPREAD": "-",
    }  # fmt: skip
