"""Which tests share a process when the suite runs on several (pytest-xdist).

Tests with a container engine share images and tags, tests with Slurm its daemons. What shares neither an image that
is built nor a tag is a group of its own; tests of the CPU cell's image are one. They are the first to start, since
they are the longest. Every other file is a group of its own: its fixtures are made once.
"""

from xdist.scheduler import LoadFileScheduling

CONTAINER = "tests/container/"
# In the order in which they start; the first that fits takes a test.
SHARED = {
    "tampered": (f"{CONTAINER}test_tampered.py",),
    # Nights make room on the engine, where one must not take another's images; the others have its stand-ins' tags.
    "nights": (
        f"{CONTAINER}rehearsal/",
        *(f"{CONTAINER}test_{name}.py" for name in ("nightly", "build_rocm_cells", "forced", "owners_walks")),
    ),
    # engines of their own, of which one is given a copy of the tests' base
    "engines": tuple(f"{CONTAINER}test_{name}.py" for name in ("two_engines", "rootless_engine")),
    "container": (CONTAINER,),
    "slurm": ("tests/slurm/",),
}


def group(nodeid):
    """Return what the tests of one process have in common: the name of a shared group, or their file."""
    return next((name for name, places in SHARED.items() if nodeid.startswith(places)), nodeid.split("::", 1)[0])


def rank(nodeid):
    """Return what groups are ordered by: the shared ones, then all others as collected."""
    return [*SHARED, group(nodeid)].index(group(nodeid))


class GroupScheduling(LoadFileScheduling):
    """Give each process whole groups, one after another."""

    def _split_scope(self, nodeid):
        return group(nodeid)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: rank(item.nodeid))  # stable: the order within a group stays


def pytest_xdist_make_scheduler(config, log):
    return GroupScheduling(config, log)
