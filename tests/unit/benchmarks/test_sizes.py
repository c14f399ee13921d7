"""docs/sizes.md says what benchmarks/results/sizes.json holds, and the script measures what it says."""

import json
import shutil
import subprocess

import pytest

from benchmarks import sizes
from tests.fixtures.device_code import MARK, code_object, plain_bundle

KEPT = json.loads(sizes.RESULTS.read_text())
CONTROL = "Package: librocblas5\nVersion: 1\nArchitecture: amd64\nMaintainer: a test <a@test>\nDescription: SYNTHETIC\n"
LIBRARY = "usr/lib/x/rocblas/5/library"


def rows():
    return [sizes.Measured(**row) for row in KEPT["packages"]]


def test_page_is_written_from_the_kept_results(tmp_path):
    page = tmp_path / "sizes.md"
    shutil.copy(sizes.PAGE, page)
    page.write_text(page.read_text().replace("rocBLAS", "somethingBLAS"))
    sizes.write(page, sizes.page(rows(), measured=KEPT["measured"]))
    begin, end = sizes.MARKERS
    assert (
        page.read_text().partition(begin)[2].partition(end)[0]
        == (sizes.PAGE.read_text().partition(begin)[2].partition(end)[0])
    )
    assert "somethingBLAS" not in page.read_text().partition(begin)[2].partition(end)[0]


def test_kept_results_are_of_genuine_packages_and_both_directions_were_proven():
    assert {row.package for row in rows()} == set(sizes.SUITES)
    for row in rows():
        assert row.bytes_after < row.bytes_before
        assert 0 < row.kernels_after < row.kernels_before
        assert (row.findings_before, row.findings_after) == (["RM213"], [])
        assert sizes.ARCHITECTURE in row.architectures


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed: no Debian or Ubuntu")
def test_package_is_measured(tmp_path):
    """On a SYNTHETIC package."""
    tree = tmp_path / "tree"
    files = {f"{LIBRARY}/Kernels.so-000-{one}.hsaco": code_object(one, padding=900) for one in ("gfx1100", "gfx906")}
    files |= {f"{LIBRARY}/TensileLibrary_lazy_{one}.dat": MARK for one in ("gfx1100", "gfx906")}
    files |= {f"{LIBRARY}/TensileLibrary_fallback.dat": MARK, "DEBIAN/control": CONTROL.encode()}
    files[f"{LIBRARY}/TensileLibrary_Type_gfx906.co"] = plain_bundle({"gfx906": code_object("gfx906")})
    for name, data in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)
    package = tmp_path / "librocblas5_1_amd64.deb"
    argv = ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(package)]
    subprocess.run(argv, check=True, capture_output=True)
    measured = sizes.measure(package)
    assert (measured.files_before, measured.files_after, measured.architectures) == (6, 3, ["gfx1100", "gfx906"])
    assert measured.kernels_after == len(code_object("gfx1100", padding=900)) + 2 * len(MARK)
    assert (measured.findings_before, measured.findings_after) == (["RM213"], [])
