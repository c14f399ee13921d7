"""Hostile run folders, metadata and checkpoints: whatever opens them ends in words, never in a traceback or RM599.

Each case is a real run of SYNTHETIC data with one place spoiled. What is accepted must have done its work.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fixtures import hostile
from tests.left_out import WHOLE
from trainer.cli import main
from trainer.engine import loop
from trainer.storage import checkpoint_store

pytestmark = pytest.mark.usefixtures("torch_as_before")
FORGED = 40 if WHOLE else 12  # of each kind of file; most cases begin anew, and so train
QUICK = ["--device", "cpu", "--hidden-layers", "4", "--step", "eager"]


def table_csv(path: Path, rows: int = 90) -> Path:
    """Write a SYNTHETIC table: two numbers, a word, and a class that follows from them."""
    rng = np.random.default_rng(0)
    lines = ["size,weight,colour,kind"]
    for number in range(rows):
        size, weight = rng.normal(), rng.normal()
        lines.append(f"{size:.4f},{weight:.4f},{('red', 'blue')[number % 2]},{'ab'[int(size > 0)]}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_csv(tmp_path_factory.mktemp("data") / "table.csv")


@pytest.fixture(scope="module")
def finished(data: Path) -> Path:
    assert train(data, data.parent / "runs", "--run", "one", "--epochs", "2") == 0
    return data.parent / "runs" / "one"


@pytest.fixture(scope="module")
def stopped(data: Path) -> Path:
    """Return an output folder with the unfinished twin of run `one`, killed after its second epoch."""
    output, whole = data.parent / "stopped", loop.close_epoch

    def close_epoch(training: Any) -> Any:
        closed = whole(training)
        if closed.epoch == 2:
            raise KeyboardInterrupt
        return closed

    loop.close_epoch = close_epoch  # type: ignore[assignment]
    try:
        assert train(data, output, "--run", "one", "--epochs", "3", "--checkpoint-every", "1") == 130
    finally:
        loop.close_epoch = whole
    assert checkpoint_store.stored(output / ".one.partial" / "checkpoints")
    return output


def train(data: Path, output: Path, *flags: str) -> int:
    argv = ["train", "--data", str(data), "--target", "kind", *QUICK, "--batch-size", "16"]
    return main([*argv, "--output", str(output), *flags])


class Programs:
    """Runs programs and looks at how they end."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys, self.codes = capsys, {}  # type: ignore[var-annotated]

    def end(self, case: str, argv: list[str]) -> str:
        """Return how a program ended: ok, or its code; fail where it has none of its own, or answered with NaN."""
        self.capsys.readouterr()
        status = main(argv)
        captured = self.capsys.readouterr()
        events = [json.loads(line) for line in captured.out.splitlines() if line.startswith("{")]
        errors = [event["code"] for event in events if event["event"] == "error"]
        code = errors[0] if errors else "ok"
        assert (status == 0) == (code == "ok"), (case, argv[0], status, captured.err[-600:])
        assert code not in ("RM599", "RM598"), (case, argv[0], captured.err[-600:])
        assert "Traceback" not in captured.err, (case, argv[0], captured.err[-600:])
        assert not any(word in captured.out for word in (": NaN", ": Infinity", ": -Infinity")), (case, argv[0])
        self.codes[code] = self.codes.get(code, 0) + 1
        return str(code)


@pytest.fixture
def programs(capsys: pytest.CaptureFixture[str]) -> Programs:
    return Programs(capsys)


def copied(folder: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target


def commands(folder: Path, data: Path, output: Path) -> Iterator[list[str]]:
    yield ["predict", "--model", str(folder), "--data", str(data)]
    yield ["report", str(folder), "--output", str(output / "report.html"), "--repeats", "1"]
    yield ["compress", "--model", str(folder), "--how", "prune", "--epochs", "1", "--output", str(output)]


def metadata_cases(finished: Path, count: int) -> list[tuple[str, bytes]]:
    document = json.loads((finished / "metadata.json").read_text())
    spoiled = [(name, hostile.text_of(made)) for name, made in hostile.sample(hostile.mutations(document), count)]
    return [*hostile.TEXTS.items(), *spoiled]


@pytest.mark.parametrize(
    ("place", "count"),
    [(0, 700 if WHOLE else 100), (1, 40 if WHOLE else 15), (2, 40 if WHOLE else 15)],
    ids=["predict", "report", "compress"],
)
def test_metadata_that_no_run_wrote_end_in_a_code(
    finished: Path, data: Path, tmp_path: Path, programs: Programs, place: int, count: int
) -> None:
    for case, content in metadata_cases(finished, count):
        folder = copied(finished, tmp_path / "one")
        (folder / "metadata.json").write_bytes(content)
        programs.end(case, list(commands(folder, data, tmp_path / "out"))[place])
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert programs.codes.get("RM546", 0) > count / 4


PRECISE: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "no features": ("RM546", lambda m: m.update(features=[])),
    "a target's deviation that is no number": ("RM546", lambda m: m["target"].update(std=float("nan"))),
    "a target's deviation of zero": ("RM546", lambda m: m["target"].update(std=0.0)),
    "an infinite mean": ("RM546", lambda m: m["target"].update(mean=float("inf"))),
    "a mean of 1e999": ("RM546", lambda m: m["scaler"]["mean"].__setitem__(0, 10**400)),
    "an input's deviation of zero": ("RM546", lambda m: m["scaler"]["std"].__setitem__(0, 0.0)),
    "one scale too few": ("RM546", lambda m: m["scaler"]["std"].pop()),
    "the same feature twice": ("RM546", lambda m: m["features"].__setitem__(1, m["features"][0])),
    "a label too few": ("RM546", lambda m: m["target"]["labels"].pop()),
    "a network of terabytes": ("RM546", lambda m: m["model"]["widths"].__setitem__(slice(1, 2), [2**22, 2**22])),
    "a run that is a path": ("RM546", lambda m: m.update(run="../../escaped")),
    "an artifact that is a path": ("RM546", lambda m: m["artifacts"].update({"../../x": {"bytes": 1, "sha256": ""}})),
    "a network that is another": ("RM546", lambda m: m["model"].update(kind="transformer")),
    "an activation that is none": ("RM546", lambda m: m["model"].update(activation="__class__")),
    "weights of another file": ("RM547", lambda m: m["artifacts"]["model.safetensors"].update(sha256="0" * 64)),
}


@pytest.mark.parametrize("case", PRECISE)
def test_metadata_that_make_no_sense_are_refused_by_every_program(
    finished: Path, data: Path, tmp_path: Path, programs: Programs, case: str
) -> None:
    code, change = PRECISE[case]
    document = json.loads((finished / "metadata.json").read_text())
    change(document)
    for argv in commands(tmp_path / "one", data, tmp_path / "out"):
        folder = copied(finished, tmp_path / "one")
        (folder / "metadata.json").write_bytes(hostile.text_of(document))
        assert programs.end(case, argv) == code
    assert not (tmp_path.parent / "escaped-prune").exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "/dev/zero", "PIPE", "/proc/self/mem", "FOLDER", "a\x00b"])
def test_path_that_metadata_name_is_not_read_unless_it_is_the_runs_data(
    finished: Path, tmp_path: Path, programs: Programs, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    named = {"PIPE": str(tmp_path / "pipe"), "FOLDER": str(tmp_path)}.get(path, path)
    document = json.loads((finished / "metadata.json").read_text())
    document["config"]["data"] = named
    folder = copied(finished, tmp_path / "one")
    (folder / "metadata.json").write_bytes(hostile.text_of(document))
    for argv in (["report", str(folder)], ["compress", "--model", str(folder)]):
        assert programs.end(path, argv) in ("RM524", "RM541", "RM546")
        assert not (folder / "report.html").exists()


@pytest.mark.parametrize("name", ["metadata.json", "model.safetensors", "metrics.jsonl"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link to nothing", "link to itself", "device", "absent", "empty"])
def test_file_of_another_kind_is_refused_and_not_waited_for(
    finished: Path, data: Path, tmp_path: Path, programs: Programs, name: str, kind: str
) -> None:
    folder = copied(finished, tmp_path / "one")
    put(folder / name, kind)
    for argv in commands(folder, data, tmp_path / "out"):
        programs.end(f"{name} is {kind}", argv)


def put(path: Path, kind: str) -> None:
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "link to nothing":
            path.symlink_to("nothing")
        case "link to itself":
            path.symlink_to(path.name)
        case "device":
            path.symlink_to("/dev/zero")
        case "empty":
            path.touch()


def test_forged_log_of_epochs_ends_in_a_code(finished: Path, data: Path, tmp_path: Path, programs: Programs) -> None:
    line = json.loads((finished / "metrics.jsonl").read_text().splitlines()[0])
    cases = [
        *hostile.TEXTS.items(),
        *((n, hostile.text_of(m)) for n, m in hostile.sample(hostile.mutations(line), FORGED)),
    ]
    for case, content in cases:
        folder = copied(finished, tmp_path / "one")
        (folder / "metrics.jsonl").write_bytes(content + b"\n")
        programs.end(case, list(commands(folder, data, tmp_path))[1])


def test_forged_settings_of_an_unfinished_run_end_in_a_code(
    stopped: Path, data: Path, tmp_path: Path, programs: Programs
) -> None:
    document = json.loads((stopped / ".one.partial" / "run.json").read_text())
    spoiled = hostile.sample(hostile.mutations(document), FORGED)
    for case, content in [*hostile.TEXTS.items(), *((name, hostile.text_of(made)) for name, made in spoiled)]:
        output = copied(stopped, tmp_path / "out")
        (output / ".one.partial" / "run.json").write_bytes(content)
        shutil.rmtree(output / ".one.partial" / "checkpoints")
        programs.end(case, resumed(data, output))
    assert programs.codes.get("RM592", 0) > FORGED / 2


def resumed(data: Path, output: Path) -> list[str]:
    return ["train", "--resume", "one", "--data", str(data), "--output", str(output), "--step", "eager"]


def resealed(folder: Path, change: Callable[[dict[str, Any]], Any], state: bytes | None = None) -> None:
    """Change the manifest of a checkpoint as somebody who can compute checksums would."""
    if state is not None:
        (folder / "state.json").write_bytes(state)
    content = json.loads((folder / "manifest.json").read_text())["content"]
    for name in content["files"]:
        found = (folder / name).read_bytes()
        content["files"][name] = {"bytes": len(found), "sha256": hashlib.sha256(found).hexdigest()}
    change(content)
    (folder / "manifest.json").write_bytes(checkpoint_store._encoded(content))


def only_checkpoint(stopped: Path, target: Path) -> tuple[Path, Path]:
    output = copied(stopped, target)
    newest, *older = checkpoint_store.stored(output / ".one.partial" / "checkpoints")
    for one in older:
        shutil.rmtree(one.path)
    return output, newest.path


def test_forged_manifests_end_in_a_code(stopped: Path, data: Path, tmp_path: Path, programs: Programs) -> None:
    _, newest = only_checkpoint(stopped, tmp_path / "out")
    content = json.loads((newest / "manifest.json").read_text())["content"]
    for case, made in hostile.sample(hostile.mutations(content), FORGED):
        output, newest = only_checkpoint(stopped, tmp_path / "out")
        if isinstance(made, dict):
            (newest / "manifest.json").write_bytes(
                checkpoint_store._encoded(made) if "ud800" not in json.dumps(made) else b"{}"
            )
        programs.end(case, resumed(data, output))


def test_forged_states_end_in_a_code(stopped: Path, data: Path, tmp_path: Path, programs: Programs) -> None:
    _, newest = only_checkpoint(stopped, tmp_path / "out")
    state = json.loads((newest / "state.json").read_text())
    spoiled = [(name, hostile.text_of(made)) for name, made in hostile.sample(hostile.mutations(state), FORGED)]
    for case, content in [*hostile.TEXTS.items(), *spoiled]:
        output, newest = only_checkpoint(stopped, tmp_path / "out")
        resealed(newest, lambda content: None, content)
        programs.end(case, resumed(data, output))


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "tensors.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link to nothing", "link to itself", "device", "absent", "empty"])
def test_checkpoints_file_of_another_kind_is_not_used_nor_waited_for(
    stopped: Path, data: Path, tmp_path: Path, programs: Programs, name: str, kind: str
) -> None:
    output, newest = only_checkpoint(stopped, tmp_path / "out")
    put(newest / name, kind)
    assert programs.end(f"{name} is {kind}", resumed(data, output)) == "ok"  # it begins anew


def test_checkpoint_that_names_files_outside_is_not_followed(
    stopped: Path, data: Path, tmp_path: Path, programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    _, newest = only_checkpoint(stopped, tmp_path / "out")
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    record = {"bytes": 7, "sha256": hashlib.sha256(b"hunter2").hexdigest()}
    resealed(newest, lambda content: content["files"].update({"../../../../secret": record}))
    assert checkpoint_store.stored(newest.parent)
    with pytest.raises(checkpoint_store.DamagedCheckpointError):
        checkpoint_store.read(checkpoint_store.stored(newest.parent)[0])


@pytest.mark.parametrize("text", ["[]", "7", '{"rows": "x"}', '{"rows": -1}', '{"rows": 0}', '{"rows": true}', "{"])
def test_unwritten_record_of_memory_is_ignored(
    stopped: Path, data: Path, tmp_path: Path, programs: Programs, text: str
) -> None:
    output = copied(stopped, tmp_path / "out")
    (output / ".one.partial" / "most_rows.json").write_text(text)
    assert programs.end(text, resumed(data, output)) == "ok"


def test_checkpoint_of_a_run_with_another_seed_is_refused_and_the_run_stays_as_it_was(
    stopped: Path, data: Path, tmp_path: Path, programs: Programs
) -> None:
    output, newest = only_checkpoint(stopped, tmp_path / "out")
    resealed(newest, lambda content: content["facts"]["settings"]["config"].update(seed=1))
    before = (output / ".one.partial" / "run.json").read_bytes()
    assert programs.end("another seed", resumed(data, output)) == "RM591"
    assert (output / ".one.partial" / "run.json").read_bytes() == before
    shutil.rmtree(newest)
    assert programs.end("without it", resumed(data, output)) == "ok"


def test_run_whose_inputs_are_computed_otherwise_now_is_refused(
    stopped: Path, data: Path, tmp_path: Path, programs: Programs
) -> None:
    output = copied(stopped, tmp_path / "out")
    file = output / ".one.partial" / "run.json"
    document = json.loads(file.read_text())
    document["inputs"]["figures"]["mean of input 0"] += 0.001
    file.write_text(json.dumps(document))
    assert programs.end("another mean", resumed(data, output)) == "RM593"
    document["inputs"]["figures"]["mean of input 0"] -= 0.001
    document["versions"]["torch"] = "1.13.1"
    file.write_text(json.dumps(document))
    assert programs.end("another torch", resumed(data, output)) == "ok"
