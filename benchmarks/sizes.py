"""Measure genuine kernel libraries: every architecture as packaged, against one alone; write docs/sizes.md.

    python -m benchmarks.sizes --packages FOLDER     unpack Debian's packages (fetched into FOLDER), measure, write
    python -m benchmarks.sizes                       write docs/sizes.md again from the kept results

The packages are unpacked and never installed; nothing runs on a card. The raw figures are kept in
benchmarks/results/sizes.json, and the page is written from them alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.verify import image_scan, kernel_code
from rocmatrix.verify.devicecode import filetree
from rocmatrix.verify.pruning import prune

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "sizes.json"
PAGE = ROOT / "docs" / "sizes.md"
MARKERS = ("<!-- begin sizes -->", "<!-- end sizes -->")
ARCHITECTURE = "gfx1100"
SUITES = {"librocblas0": "trixie", "librocblas5": "experimental", "libhipblaslt1": "experimental"}
LIBRARIES = {"librocblas0": "rocBLAS", "librocblas5": "rocBLAS", "libhipblaslt1": "hipBLASLt"}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One package: bytes of files as stored before and after pruning, and seconds that proving and pruning took.

    `host` is the bytes of its host libraries, which hold every architecture in one file and stay as they are.
    """

    package: str
    version: str
    suite: str
    library: str
    architectures: list[str]
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    kernels_before: int
    kernels_after: int
    host: int
    prove_seconds: float
    prune_seconds: float
    findings_before: list[str]
    findings_after: list[str]


def measure(package: Path) -> Measured:
    """Unpack one .deb, look into it, prune it to the architecture and look again."""
    name, version = (_field(package, field) for field in ("Package", "Version"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "--extract", str(package), folder], check=True)
        tree = Path(folder)
        started = time.monotonic()
        before = _listing(tree, LIBRARIES[name])
        proved = time.monotonic()
        done = prune.prune(tree, ARCHITECTURE)
        pruned = time.monotonic()
        after = _listing(tree, LIBRARIES[name])
    return Measured(
        package=name,
        version=version,
        suite=SUITES[name],
        library=LIBRARIES[name],
        architectures=before.architectures,
        files_before=before.files,
        files_after=after.files,
        bytes_before=int(str(done["before"])),
        bytes_after=int(str(done["after"])),
        kernels_before=before.kernels,
        kernels_after=after.kernels,
        host=after.host,
        prove_seconds=round(proved - started, 2),
        prune_seconds=round(pruned - proved, 2),
        findings_before=before.findings,
        findings_after=after.findings,
    )


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a tree holds of one library, and the codes of what is wrong for one architecture alone."""

    architectures: list[str]
    files: int
    kernels: int
    host: int
    findings: list[str]


def _listing(tree: Path, library: str) -> Listing:
    known = matrix_file.load(ROOT).kernels
    found = image_scan.read(filetree.on_disk(tree), known)
    check = kernel_code.check(found, architecture=ARCHITECTURE, known=known, required=[library], alone=True)
    held = found.library(library)
    return Listing(
        architectures=sorted({target.processor for file in held.files for target in file.targets if file.holds_code}),
        files=len(held.paths),
        kernels=sum((tree / path.lstrip("/")).lstat().st_size for path in held.paths),
        host=sum(file.size for file in found.others if file.format == "fat binary"),
        findings=sorted({finding.code for finding in check.findings}),
    )


def _field(package: Path, field: str) -> str:
    argv = ["dpkg-deb", "--field", str(package), field]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def fetch(folder: Path) -> list[Path]:
    """Download the packages into `folder` with apt, from the suites beside the machine's own; install nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    options = _apt(folder)
    missing = [name for name in SUITES if not list(folder.glob(f"{name}_*.deb"))]
    if missing:
        subprocess.run(["apt-get", *options, "--quiet=2", "update"], check=True)
        targets = [f"{name}/{SUITES[name]}" for name in missing]
        subprocess.run(["apt-get", *options, "--quiet=2", "download", *targets], cwd=folder, check=True)
    return [next(iter(sorted(folder.glob(f"{name}_*.deb")))) for name in SUITES]


def _apt(folder: Path) -> list[str]:
    """Return apt's options for lists of its own, with the archive that this machine installs from."""
    own = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (own / part).mkdir(parents=True, exist_ok=True)
    script = '. "$1"; archive'
    argv = ["bash", "-c", script, "sizes", str(ROOT / ".ci" / "apt.sh")]
    archive = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    suites = sorted({*SUITES.values()})
    (own / "sources.list").write_text("".join(f"deb [signed-by={key}] {archive} {suite} main\n" for suite in suites))
    settings = {
        "Dir::Etc::sourcelist": own / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": own / "lists",
        "Dir::Cache": own / "cache",
        "APT::Sandbox::User": "root",
    }
    return [f"--option={name}={value}" for name, value in settings.items()]


def page(results: Sequence[Measured], *, measured: str) -> Iterator[str]:
    """Yield the lines between the markers of docs/sizes.md."""
    yield f"Measured {measured} by `python -m benchmarks.sizes`; raw figures in benchmarks/results/sizes.json."
    yield ""
    yield f"| Package | Library | Architectures | Kernel files | {ARCHITECTURE} alone | Saved | Whole package | after |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for one in results:
        saved = 1 - one.kernels_after / one.kernels_before
        yield (
            f"| {one.package} {one.version} ({one.suite}) | {one.library} | {len(one.architectures)} "
            f"| {one.files_before} files, {_mb(one.kernels_before)} | {one.files_after} files, "
            f"{_mb(one.kernels_after)} | {saved:.1%} | {_mb(one.bytes_before)} | {_mb(one.bytes_after)} |"
        )
    yield ""
    yield "| Package | Architectures found | Host libraries, left as they are | Proving took | Pruning took |"
    yield "| --- | --- | --- | --- | --- |"
    for one in results:
        yield (
            f"| {one.package} | {', '.join(one.architectures)} | {_mb(one.host)} "
            f"| {one.prove_seconds:.1f} s | {one.prune_seconds:.1f} s |"
        )
    yield ""
    for one in results:
        yield (
            f"- {one.package}: proving it for {ARCHITECTURE} alone found {', '.join(one.findings_before) or 'nothing'} "
            f"before, {', '.join(one.findings_after) or 'nothing'} after."
        )


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def write(page_file: Path, lines: Iterator[str]) -> None:
    """Replace what stands between the markers."""
    text = page_file.read_text(encoding="utf-8")
    begin, end = (text.index(marker) for marker in MARKERS)
    page_file.write_text(text[: begin + len(MARKERS[0])] + "\n" + "\n".join(lines) + "\n" + text[end:], "utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure where packages are given, and write the page."""
    parser = argparse.ArgumentParser(prog="benchmarks.sizes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--packages", type=Path, help="a folder for the .deb files; missing ones are fetched")
    arguments = parser.parse_args(argv)
    if arguments.packages:
        if shutil.which("dpkg-deb") is None:
            print("sizes: needs dpkg-deb and apt-get, as on Debian and Ubuntu", file=sys.stderr)
            return 2
        results = [measure(package) for package in fetch(arguments.packages.resolve())]
        kept = {"measured": date.today().isoformat(), "packages": [asdict(one) for one in results]}
        RESULTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    write(PAGE, page([Measured(**row) for row in kept["packages"]], measured=kept["measured"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
