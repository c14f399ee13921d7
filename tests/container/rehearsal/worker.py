"""Runs commands of one checkout, each in a process of its own that is forked off once everything is imported.

A command is what a person types after `./invokew`. Requests and answers are JSON lines. SIGKILL of a command's process
is what it is for a person's: nothing in the program is told beforehand.
"""

import importlib
import json
import os
import signal
import sys
from pathlib import Path

LOADED = (
    "docker", "jinja2", "rich.table", "tasks", "rocmatrix.cli.program", "rocmatrix.cli.commands.dashboard",
    "rocmatrix.cli.commands.evidence", "rocmatrix.cli.commands.matrix", "rocmatrix.cli.commands.nightly",
    "rocmatrix.cli.commands.jobs", "rocmatrix.cli.commands.prove", "rocmatrix.nightly.stages",
    "rocmatrix.jobs.contained",
    "rocmatrix.evidence.dashboard.site", "rocmatrix.evidence.dashboard.view", "rocmatrix.evidence.import_export",
    "rocmatrix.evidence.unfinished_runs", "rocmatrix.jobs.job", "rocmatrix.verify.proof",
)  # fmt: skip


def begin(request):
    """Fork the command off; return its process."""
    if pid := os.fork():
        return pid
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for descriptor, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)
    os.environ.update(request["environment"])
    status = 70
    try:
        sys.argv = ["invokew", *request["argv"]]
        set_clock(request.get("hours", 0))
        for place, value in request.get("settings", {}).items():
            module, _, name = place.rpartition(".")
            setattr(importlib.import_module(module), name, value)
        from rocmatrix.cli.program import program

        program.run(["./invokew", *request["argv"]], exit=False)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        os._exit(status)


def set_clock(hours):
    """Let records and the journal have another time, at the one place where they ask for it."""
    if not hours:
        return
    from datetime import UTC, datetime, timedelta

    from rocmatrix.evidence import from_events
    from rocmatrix.nightly import journal

    def moved():
        return f"{datetime.now(UTC) + timedelta(hours=hours):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"

    from_events.now = journal.now = moved


def read():
    """Read the matrix and the signatures, which a program keeps by their text: of seconds once, for each command."""
    from rocmatrix.diagnosis import signature
    from rocmatrix.matrix.loading import load

    signature.load(Path.cwd())
    load.load(Path.cwd())


def main():
    for name in LOADED:
        importlib.import_module(name)
    read()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = {"status": os.waitstatus_to_exitcode(status)}
        else:
            answer = {"pid": begin(request)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()
