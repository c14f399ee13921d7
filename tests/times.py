"""Where the suite's time goes, by file: the last lines of a run name what to look at when it gets slow.

pytest's own --durations names single tests; here a thousand short ones of one file count as what they are together.
"""

from collections import Counter

SHOWN = 30
FEW = 60.0  # seconds in all, below which a run is not worth a table


def by_file(reports):
    """Return the seconds that the tests of each file took with their fixtures, the longest first.

    Args:
        reports: pytest's reports of set-up, call and tear-down, each with `nodeid` and `duration` in seconds.
    """
    seconds = Counter()
    for report in reports:
        seconds[report.nodeid.split("::", 1)[0]] += report.duration
    return seconds.most_common()


def pytest_terminal_summary(terminalreporter):
    reports = [one for kind in terminalreporter.stats.values() for one in kind if hasattr(one, "duration")]
    files = by_file(reports)
    total = sum(seconds for _, seconds in files)
    if total < FEW:
        return
    shown = files[:SHOWN]
    terminalreporter.section(f"slowest {len(shown)} of {len(files)} files, of {total:.0f} s of all processes together")
    for name, seconds in shown:
        terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
