from __future__ import annotations

import errno
import importlib
import pkgutil
from pathlib import Path

import pytest

from trainer.runtime import codes
from trainer.runtime.codes.entry import CatalogEntry
from trainer.runtime.errors import CATALOG, TrainerError, from_log_settings, from_os_error, suggestion

TOPICS = [module.name for module in pkgutil.iter_modules(codes.__path__) if module.name != "entry"]


def held(topic: str) -> tuple[CatalogEntry, ...]:
    module = importlib.import_module(f"trainer.runtime.codes.{topic}")
    found: tuple[CatalogEntry, ...] = getattr(module, topic.upper())
    return found


def test_codes_are_unique_and_in_a_topic() -> None:
    together = [entry.code for topic in TOPICS for entry in held(topic)]
    assert together
    assert sorted(together) == list(CATALOG)


def test_topics_are_in_numeric_order() -> None:
    for topic in TOPICS:
        numbers = [int(entry.code.removeprefix("RM")) for entry in held(topic)]
        assert numbers == sorted(numbers), topic


def test_codes_are_the_trainers_own_and_have_all_parts() -> None:
    for code, entry in CATALOG.items():
        assert code == entry.code
        assert int(code.removeprefix("RM")) // 100 == 5 or 700 <= int(code.removeprefix("RM")) <= 739
        assert all((entry.title, entry.meaning, entry.next))


def test_titles_are_unique() -> None:
    assert len({entry.title for entry in CATALOG.values()}) == len(CATALOG)


def test_rendering_leaves_out_what_is_unknown_and_falls_back_to_the_catalogs_remedy() -> None:
    error = TrainerError("RM510", what="No such file", where="x.csv")
    assert str(error).splitlines() == [
        "RM510 Data file cannot be read",
        "  what:  No such file",
        "  where: x.csv",
        f"  hint:  {CATALOG['RM510'].next}",
    ]


def test_continued_lines_stay_in_their_column() -> None:
    error = TrainerError("RM599", what="first\nsecond", next="report")
    assert "  what:  first\n         second\n  hint:  report" in str(error)


def test_event_holds_the_same_parts() -> None:
    error = TrainerError("RM520", what="no device", why="none", next="take cpu")
    title = CATALOG["RM520"].title
    assert error.parts() == {"code": "RM520", "title": title, "what": "no device", "why": "none", "next": "take cpu"}


def test_unknown_code_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        TrainerError("RM000", what="?")


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "RM543"),
        (errno.EDQUOT, "RM543"),
        (errno.EFBIG, "RM543"),
        (errno.ENAMETOOLONG, "RM544"),
        (errno.ELOOP, "RM544"),
        (errno.EROFS, "RM542"),
        (errno.EACCES, "RM541"),
        (errno.EPERM, "RM541"),
        (errno.ENOTDIR, "RM544"),
        (errno.EPIPE, "RM545"),
    ],
)
def test_system_errors_get_codes_and_keep_their_path(number: int, code: str) -> None:
    error = from_os_error(OSError(number, "said the system", "/some/path"))
    assert error is not None
    assert (error.code, error.what, error.where, error.exit_status) == (code, "said the system", "/some/path", 2)


def test_other_system_errors_are_left_to_the_caller() -> None:
    limit = from_os_error(OSError(errno.EFBIG, "File too large", "/some/file"))
    assert limit is not None and "ulimit -f" in limit.next
    assert from_os_error(OSError(errno.EIO, "broken disk")) is None
    assert from_os_error(OSError("no number at all")) is None


def test_removed_working_folder_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    assert from_os_error(FileNotFoundError(errno.ENOENT, "No such file or directory")) is None
    (tmp_path / "gone").rmdir()
    error = from_os_error(FileNotFoundError(errno.ENOENT, "No such file or directory"))
    assert error is not None and (error.code, error.exit_status) == ("RM500", 2)


def test_exit_status_separates_defects_and_interrupts_from_mistakes() -> None:
    statuses = {code: TrainerError(code, what="x").exit_status for code in ("RM500", "RM598", "RM599")}
    assert statuses == {"RM500": 2, "RM598": 130, "RM599": 1}


def test_suggestion_names_the_nearest_or_all() -> None:
    assert suggestion("--epoch", ["--epochs", "--data"]) == "did you mean --epochs?"
    assert suggestion("--zzz", ["--epochs", "--data"]) == "known: --epochs, --data"


def test_log_settings_that_torch_refuses_are_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    internal = pytest.importorskip("torch._logging._internal")
    monkeypatch.setenv("TORCH_LOGS", "nonsense")
    with pytest.raises(ValueError) as caught:
        internal._parse_log_settings("nonsense")
    found = from_log_settings(caught.value)
    assert found is not None and (found.code, "'nonsense'" in found.what) == ("RM500", True)
    assert from_log_settings(ValueError("of another place")) is None
    monkeypatch.delenv("TORCH_LOGS")
    assert from_log_settings(caught.value) is None


def test_error_of_a_library_in_rust_has_the_code_of_its_number() -> None:
    found = from_os_error(OSError("No space left on device (os error 28)"))
    assert found is not None
    assert (found.code, found.what) == ("RM543", "No space left on device")
    assert from_os_error(OSError("something (os error 4242)")) is None
    assert from_os_error(OSError("without a number")) is None
