"""2,000 random requests as people type them: an image is offered exactly where no rule calls it broken.

What is expected is computed here from releases, bases and rules alone, without the resolver.
"""

import random

import pytest
from packaging.version import Version

from rocmatrix.cli.options.common import WithCompanions
from rocmatrix.images import companion_lock
from rocmatrix.matrix.resolver.resolve import resolve
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

SEED, COUNT = 13, 2000
RELEASES = [release for release in MATRIX.releases if release.rocm]
LINES = sorted({release.rocm for release in RELEASES})
TORCH = sorted({release.torch for release in RELEASES})
CARDS = {gfx: next((card for card in entry.cards if " " in card), gfx) for gfx, entry in MATRIX.architectures.items()}
COMPANIONS = {companion.package: companion for companion in MATRIX.companions if "*" not in companion.package}


def served(minor, patch):
    """The line of wheels that serves a patch release, written down by hand for those with lines of their own."""
    return {"6.2": "6.2.4" if patch >= 4 else "6.2", "5.4": "5.4.2"}.get(minor, minor)


def a_rocm(draw):
    """ROCm as typed, and the lines that it means."""
    line = draw.choice(LINES)
    minor, patch = ".".join(line.split(".")[:2]), draw.randrange(6)
    kind = draw.choice(["open", "line", "line", "words", "patch", "package", "series"])
    if kind == "open":
        return "", LINES
    if kind == "series":
        major = line.split(".")[0]
        return draw.choice([major, f"{major}.x", f"ROCm {major}"]), [x for x in LINES if x.split(".")[0] == major]
    if kind in ("patch", "package"):
        return f"{minor}.{patch}" + ("-1" if kind == "package" else ""), [served(minor, patch)]
    return (line if kind == "line" else f"rocm-{line}"), [line]


def a_torch(draw):
    """Torch as typed, the versions that it means, and the ROCm in it."""
    release = draw.choice(RELEASES)
    kind = draw.choice(["open", "whole", "whole", "minor", "series", "wheel"])
    if kind == "open":
        return "", TORCH, None
    if kind == "minor":
        minor = ".".join(release.torch.split(".")[:2])
        return minor, [t for t in TORCH if Version(t) == Version(minor)], None
    if kind == "series":
        return "2", TORCH, None
    if kind == "wheel":
        return f"{release.torch}+rocm{release.rocm}", [release.torch], release.rocm
    return f"torch=={release.torch}", [release.torch], None


def request_(draw):
    """A request as typed, with the releases that it means, its card and its Python."""
    rocm, lines = a_rocm(draw)
    torch, versions, own = a_torch(draw)
    if own is not None:
        rocm, lines = draw.choice([("", [own]), (own, [own])])
    gfx = draw.choice(list(MATRIX.architectures))
    python = draw.choice(["", "", "", "3.10", "3.11", "3.12", "cp313", "python 3.14"])
    added = draw.sample(sorted(COMPANIONS), draw.choice([0, 0, 1, 2]))
    typed = {"rocm": rocm, "torch": torch, "gpu": draw.choice([gfx, CARDS[gfx]]), "python": python, "cell": ""}
    number = {"cp313": "3.13", "python 3.14": "3.14"}.get(python, python)
    pairs = [(line, version) for line in lines for version in versions]
    joined = [release for release in RELEASES if (release.rocm, release.torch) in pairs]
    joined = joined or pairs  # no release joins them
    return typed | {"companions": ",".join(added), "with_requirements": ""}, joined, gfx, number, added


def broken(gfx, release, rules=None):
    rocm, torch = release if isinstance(release, tuple) else (release.rocm, release.torch)
    axes = {"architecture": gfx, "torch": torch, "rocm": rocm}
    found = (*MATRIX.rules, *MATRIX.derived_rules) if rules is None else rules
    return any(
        rule.verdict == "broken" and rule.decides and rule.when.matches(**axes, package=rule.when.package)
        for rule in found
        if rules is not None or rule.when.package is None
    )


def refusal(gfx, release, package):
    """The code under which a companion is refused; empty where it is not."""
    companion = COMPANIONS[package]
    return "RM013" if broken(gfx, release, companion.rules) else "RM222" if companion.no_wheel else ""


def pythons(release):
    """The Pythons of bases for a release's kind of wheels, among those that it was built for."""
    kind = release.device_code.layout
    return {base.python for base in MATRIX.bases.values() if kind in base.serves and base.python in release.pythons}


def expected(request, gfx, python):
    """Whether an image is offered, else the code of the refusal; releases of unknown cards count where alone."""
    if isinstance(request[0], tuple):
        against = [broken(gfx, pair) for pair in request]
        return "RM012" if all(against) else "RM011" if not any(against) else "RM011 or RM012"
    known = [release for release in request if release.architectures is not None] or request
    sound = [release for release in known if not broken(gfx, release)]
    if any(pythons(release) and python in ("", *pythons(release)) for release in sound):
        return "cell"
    return "RM014" if sound else "RM012"


def answer(typed):
    try:
        request = WithCompanions(**typed).request
        return resolve(MATRIX, request).cell, request
    except RocmatrixError as error:
        return error.code, None


@pytest.fixture(scope="module")
def drawn():
    draw = random.Random(SEED)
    return [request_(draw) for _ in range(COUNT)]


def test_image_is_offered_on_random_requests_exactly_where_no_rule_calls_it_broken(drawn):
    seen = {}
    for typed, releases, gfx, python, added in drawn:
        found, request = answer(typed)
        code = found if isinstance(found, str) else "cell"
        assert code in expected(releases, gfx, python), (typed, code)
        if code == "cell":
            assert (found.architecture, found.broken_by) == (gfx, ()), typed
            assert found.release in releases, (typed, found.name)
            assert python in ("", found.python), (typed, found.name)
        seen[code] = seen.get(code, 0) + 1
        assert added or not request or not request.companions
    assert seen.keys() == {"cell", "RM011", "RM012", "RM014"}
    assert min(seen[code] for code in ("cell", "RM012", "RM014")) > 20, seen


def test_companion_is_refused_on_random_requests_exactly_where_a_rule_or_a_missing_wheel_excludes_it(drawn):
    seen = {}
    for typed, *_, added in drawn:
        cell, request = answer(typed)
        if not added or isinstance(cell, str):
            continue
        refused = [code for each in added if (code := refusal(cell.architecture, cell.release, each))]
        try:
            named = companion_lock.added(MATRIX, cell, request.companions)
            code = ""
            assert MATRIX.cell(named.name).companions == named.companions
        except RocmatrixError as error:
            code = error.code
        assert code == (refused[0] if refused else ""), (typed, cell.name)
        seen[code] = seen.get(code, 0) + 1
    assert seen.keys() == {"", "RM013", "RM222"}
    assert min(seen.values()) > 20, seen
