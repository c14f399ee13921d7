"""Try HIP's (or CUDA's) C interface in a child process: a library that aborts costs one check, no more.

The child, `python -m trainer.diagnostics.probes.c_api.trial rocm`, prints JSON lines: what it is about to do, then what
came of it. So after a crash the last line names the call that did it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from trainer.diagnostics.probes.c_api.bindings import (
    CUDA,
    INTERFACES,
    NO_DEVICE,
    NO_DRIVER,
    SGEMM_LIMIT,
    Api,
    CallError,
    Interface,
    NoDeviceError,
    Pair,
    sgemm_error,
)
from trainer.diagnostics.probes.c_api.loading import Library, LibraryError, load
from trainer.diagnostics.probes.entry import claim_stdout
from trainer.diagnostics.probes.verdict import Check, Kind, at_least, at_most, not_applicable
from trainer.runtime.child_process import Outcome, run_limited

CHILD_MODULE = "trainer.diagnostics.probes.c_api.trial"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Result of a trial of the C interface; `no_device` has the library's words when there is none."""

    checks: tuple[Check, ...]
    versions: dict[str, str]
    no_device: str | None = None


def try_in_child(kind: Kind, seconds: float) -> Findings:
    """Examine the C interface of `kind` (`rocm` or `cuda`) in a child process, for at most `seconds`."""
    outcome = run_limited([sys.executable, "-m", CHILD_MODULE, kind], seconds=seconds)
    sys.stderr.write(outcome.stderr)
    return read(outcome)


def read(outcome: Outcome) -> Findings:
    """Return the findings in a child's output; a child that did not finish adds a failed check that names the call."""
    records = [json.loads(line) for line in outcome.stdout.splitlines()]
    checks = [Check(**record["check"]) for record in records if "check" in record]
    if outcome.returncode != 0 or not any("done" in record for record in records):
        steps = [record["begin"] for record in records if "begin" in record]
        checks.append(unfinished(steps[-1] if steps else "start", outcome))
    return Findings(
        checks=tuple(checks),
        versions=dict(record["version"] for record in records if "version" in record),
        no_device=next((record["no_device"] for record in records if "no_device" in record), None),
    )


def unfinished(step: str, outcome: Outcome) -> Check:
    """Return the failed check of a child that hung or died in `step`."""
    how = "hung" if outcome.timed_out else f"ended by {outcome.signal_name or f'status {outcome.returncode}'}"
    stderr_tail = outcome.stderr_tail(lines=1)
    return Check(name=step, status="fail", detail=f"the process {how}" + (f": {stderr_tail}" if stderr_tail else ""))


@dataclass(frozen=True)
class Report:
    """Writes what happens as JSON lines, each at once."""

    write: Callable[[dict[str, Any]], None]

    def begin(self, step: str) -> None:
        """Name the step that may now take the process down."""
        self.write({"begin": step})

    def check(self, check: Check) -> None:
        """Record a finished check."""
        self.write({"check": asdict(check)})

    def version(self, name: str, text: str) -> None:
        """Record a library's version."""
        self.write({"version": [name, text]})

    @contextmanager
    def failing(self, step: str) -> Iterator[None]:
        """Run a step; a call that fails becomes a failed check."""
        self.begin(step)
        try:
            yield
        except CallError as error:
            self.check(Check(name=step, status="fail", detail=str(error)))


def examine(interface: Interface, report: Report) -> None:
    """Load the libraries, ask for their versions, count devices, make a handle and one product."""
    runtime = load_step(interface.runtime, report)
    blas = load_step(interface.blas, report)
    for companion in interface.companions:
        load_step(companion, report, optional=True)
    if runtime is None:
        return
    runtime_api = Api(library=runtime, describe=f"{interface.prefix}GetErrorString")
    runtime_versions(interface, runtime_api, report)
    try:
        count_devices(interface, runtime_api, report)
    except NoDeviceError as reason:
        report.write({"no_device": str(reason)})
        return
    if blas is not None:
        blas_api = Api(library=blas, describe=interface.status_text)
        blas_handle(Pair(interface=interface, runtime=runtime_api, blas=blas_api), report)


def load_step(stem: str, report: Report, optional: bool = False) -> Library | None:
    """Load one library; an optional one that is not installed is not applicable, a broken one always fails.

    Args:
        stem: name of the library without "lib" and ".so".
        optional: absence is not applicable in place of a failure.
    """
    step = f"load lib{stem}"
    report.begin(step)
    try:
        library = load(stem)
    except LibraryError as error:
        absent = optional and str(error).endswith("not installed")
        report.check(not_applicable(step, str(error)) if absent else Check(name=step, status="fail", detail=str(error)))
        return None
    report.check(Check(name=step, status="pass", detail=str(library.path)))
    report.version(f"lib{stem}", library_version(stem, library))
    return library


def library_version(stem: str, library: Library) -> str:
    """Return the version that a library states without a device, else the name of its file, which holds one."""
    if stem != "rocblas":
        return library.path.name
    text = ctypes.create_string_buffer(256)
    failed = library.handle.rocblas_get_version_string(text, ctypes.c_size_t(len(text)))
    return library.path.name if failed else text.value.decode(errors="replace").rstrip(".")


def runtime_versions(interface: Interface, runtime: Api, report: Report) -> None:
    """Record the runtime's own version and the driver's; without a device some releases report neither."""
    for part in ("Runtime", "Driver"):
        function = f"{interface.prefix}{part}GetVersion"
        report.begin(function)
        try:
            version = decode_version(interface, runtime.integer(function))
        except CallError as error:
            version = f"unknown ({error})"
        report.version(f"{interface.prefix} {part.lower()}", version)


def decode_version(interface: Interface, number: int) -> str:
    """HIP packs major * 10^7 + minor * 10^5 + patch (since 4.2), CUDA major * 1000 + minor * 10."""
    if interface is CUDA:
        return f"{number // 1000}.{number % 1000 // 10}"
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


def count_devices(interface: Interface, runtime: Api, report: Report) -> None:
    """Count the devices.

    Raises:
        NoDeviceError: the runtime reports none.
    """
    function = f"{interface.prefix}GetDeviceCount"
    with report.failing(function):
        try:
            count = runtime.integer(function)
        except CallError as error:
            if error.code in (NO_DEVICE, NO_DRIVER):
                raise NoDeviceError(str(error)) from error
            raise
        if count == 0:
            raise NoDeviceError(f"{function} counts 0 devices")
        report.check(at_least(function, count, 1, "devices"))


def blas_handle(pair: Pair, report: Report) -> None:
    """Create a BLAS handle, multiply once with it, destroy it."""
    interface, handle = pair.interface, ctypes.c_void_p()
    with report.failing(interface.create):
        pair.blas.call(interface.create, ctypes.byref(handle))
        report.check(Check(name=interface.create, status="pass"))
    if not handle.value:
        return
    with report.failing(interface.sgemm):
        error = sgemm_error(pair, handle)
        report.check(at_most(interface.sgemm, error, SGEMM_LIMIT, "relative Frobenius error"))
    with report.failing(interface.destroy):
        pair.blas.call(interface.destroy, handle)
        report.check(Check(name=interface.destroy, status="pass"))


def main(argv: Sequence[str] | None = None) -> int:
    """Examine, in the child, the interface named on the command line. Returns 0: the lines carry the findings."""
    parser = argparse.ArgumentParser(description="Try a C interface and print what happens as JSON lines.")
    parser.add_argument("interface", choices=sorted(INTERFACES))
    interface = INTERFACES[parser.parse_args(argv).interface]
    lines = claim_stdout()
    report = Report(lambda record: print(json.dumps(record), file=lines, flush=True))
    examine(interface, report)
    report.begin("exit")
    report.write({"done": True})
    return 0


if __name__ == "__main__":
    sys.exit(main())
