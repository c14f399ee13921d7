"""The table of the slowest files counts fixtures and tests of a file together, and is left out of short runs."""

from types import SimpleNamespace

import pytest

from tests import times


def report(nodeid, seconds):
    return SimpleNamespace(nodeid=nodeid, duration=seconds)


REPORTS = [report("a.py::test_x", 40.0), report("b.py::test_y[1]", 30.0), report("a.py::test_z", 5.0)]


class Screen:
    def __init__(self, reports):
        self.stats, self.lines = {"passed": reports, "": [object()]}, []

    def section(self, title):
        self.lines.append(title)

    write_line = section


def test_seconds_of_a_file_are_added_up():
    assert times.by_file(REPORTS) == [("a.py", 45.0), ("b.py", 30.0)]


@pytest.mark.parametrize(("reports", "lines"), [(REPORTS, 3), (REPORTS[:1], 0)])
def test_table_has_a_line_for_a_file_and_is_left_out_of_a_short_run(reports, lines):
    screen = Screen(reports)
    times.pytest_terminal_summary(screen)
    assert len(screen.lines) == lines
    assert lines == 0 or (screen.lines[0].endswith("75 s of all processes together") and "a.py" in screen.lines[1])
