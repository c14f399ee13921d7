"""No tree makes the reader, the doctor or the picture fail: files are cut, filled with anything, or withheld."""

import shutil
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmatrix.doctor import examination, host, knowledge
from rocmatrix.host import topology, topology_svg
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import machines, sysfs
from tests.left_out import WHOLE

KNOWN = knowledge.load(Path(__file__).resolve().parents[4])
BUILDERS = (
    machines.two_rx_7900_xt,
    machines.mi50,
    machines.strix_halo,
    machines.rx_9070_xt,
    machines.desktop_with_igpu,
    lambda root: machines.mi300x_cpx(root, cards=1),
    sysfs.old_kernel,
)
NUMBERS = st.sampled_from(["-1", "0", "18446744073709551615", "18446744073709551616", "9" * 40, "0x10", "1e9", "٣"])
CONTENT = st.one_of(
    st.binary(max_size=40),
    NUMBERS.map(str.encode),
    st.tuples(
        st.sampled_from(["location_id", "gfx_target_version", "unique_id", "node_to", "simd_per_cu"]), NUMBERS
    ).map(lambda row: f"{row[0]} {row[1]}\n".encode()),
)
KEYS = ["location_id", "domain", "gfx_target_version", "unique_id", "simd_per_cu", "drm_render_minor", "node_to"]
CHANGE = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 10_000), st.tuples(st.sampled_from(KEYS), NUMBERS)),
    st.tuples(st.just("fill"), st.integers(0, 10_000), CONTENT),
    st.tuples(st.just("cut"), st.integers(0, 10_000), st.integers(0, 60)),
    st.tuples(st.just("drop"), st.integers(0, 10_000), st.none()),
    st.tuples(st.just("folder"), st.integers(0, 10_000), st.none()),
    st.tuples(st.just("withhold"), st.integers(0, 3), st.none()),
)


def spoil(machine, changes):
    files = sorted(path for path in machine.root.rglob("*") if path.is_file() and not path.is_symlink())
    tables = [path for path in files if path.name == "properties" and path.parent.parent.name == "nodes"]
    for kind, where, what in changes:
        path = files[where % len(files)]
        if kind == "add":
            path = tables[where % len(tables)]
            if path.is_file():
                path.write_bytes(path.read_bytes() + b"\n%s %s\n" % (what[0].encode(), what[1].encode()))
            continue
        if kind == "withhold":
            machine.withhold(where)
        elif path.is_file():
            if kind == "fill":
                path.write_bytes(what)
            elif kind == "cut":
                path.write_bytes(path.read_bytes()[:what])
            else:
                path.unlink()
                if kind == "folder":
                    path.mkdir()


@settings(max_examples=60 if WHOLE else 20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, len(BUILDERS) - 1), changes=st.lists(CHANGE, min_size=1, max_size=6))
def test_spoiled_tree_never_raises(tmp_path, which, changes):
    root = tmp_path / "tree"
    shutil.rmtree(root, ignore_errors=True)
    machine = BUILDERS[which](root)
    spoil(machine, changes)
    found = read_hardware(machine)
    assert [card.index for card in found.cards] == list(range(len(found.cards)))
    assert all(card.unique_id is None or 0 < card.unique_id < 1 << 64 for card in found.cards)
    assert sum(map(len, found.physical_cards)) == len(found.cards)
    assert bool(found.cards) == (found.reason is None)
    done = examination.examine(host.read(machine, environment={}), KNOWN)
    assert {finding.code for finding in done.findings} >= {"D101", "D503"}
    drawn = topology.picture(found)
    assert len(drawn.cards) == len(found.cards)
    assert topology.text(drawn)
    assert topology_svg.svg(drawn).endswith("</svg>\n")
