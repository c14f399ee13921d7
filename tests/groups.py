"""Which tests share a process when the suite runs on several (pytest-xdist).

Tests with a container engine share images and tags, tests with Slurm its daemons: each of the two is one group. The
rehearsal has checkouts and tags of its own, and is a third. They are the first to start, since they are the longest.
Every other file is a group of its own: its fixtures are made once.
"""

from xdist.scheduler import LoadFileScheduling

SHARED = ("tests/container/rehearsal/", "tests/container/", "tests/slurm/")  # in the order in which they start


def group(nodeid):
    """Return what the tests of one process have in common: a shared folder, or their file."""
    return next((folder for folder in SHARED if nodeid.startswith(folder)), nodeid.split("::", 1)[0])


def rank(nodeid):
    """Return what groups are ordered by: the shared folders, then all others as collected."""
    return next((number for number, folder in enumerate(SHARED) if nodeid.startswith(folder)), len(SHARED))


class GroupScheduling(LoadFileScheduling):
    """Give each process whole groups, one after another."""

    def _split_scope(self, nodeid):
        return group(nodeid)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: rank(item.nodeid))  # stable: the order within a group stays


def pytest_xdist_make_scheduler(config, log):
    return GroupScheduling(config, log)
