"""A user's callback: loaded from a file or a module, and called so that it cannot change a run unseen."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from trainer.device.rng import RngState
from trainer.engine.callbacks.callback import Callback
from trainer.engine.callbacks.fingerprint import Fingerprint
from trainer.runtime.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class UserCallback:
    """A callback that was given with --callback: `name` as given, `sha256` of the file that defines it."""

    name: str
    sha256: str
    path: str
    callback: Callback

    def facts(self) -> dict[str, Any]:
        """Return what metadata.json records of it."""
        flags = {name: bool(getattr(self.callback, name)) for name in ("changes_results", "all_ranks")}
        return {"name": self.name, "sha256": self.sha256, **flags}

    def guarded(self, hook: str) -> Callable[..., Any]:
        """Return the hook, whose exceptions and forbidden changes end the run by an error that names it.

        What it prints goes to standard error.

        The returned function raises RM733 for an exception and RM734 for a change that the class does not announce.
        """
        method, calls = getattr(self.callback, hook), 0

        def call(run: Any, *arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if self.callback.changes_results:
                return self._called(method, hook, run, *arguments, **named)
            moment = RngState.now(run.device)
            # the content itself is compared at the calls 1, 2, 4, 8 and so on: that costs a pass over the weights
            before = Fingerprint.of(run, content=calls & (calls - 1) == 0)
            try:
                return self._called(method, hook, run, *arguments, **named)
            finally:
                moment.restore(run.device)
                if sys.exception() is None and (changed := before.difference(run)):
                    raise TrainerError(
                        "RM734", what=f"{self.name}, {hook}: {changed} changed", where=f"step {run.state.step}"
                    )

        return call

    def _called(self, method: Callable[..., Any], hook: str, run: Any, *arguments: Any, **named: Any) -> Any:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # standard output holds JSON lines alone
                return method(run, *arguments, **named)
        except (Exception, SystemExit) as error:
            what = f"{self.name}, {hook}: {described(error)}"
            raise TrainerError(
                "RM733", what=what, where=f"step {run.state.step}, {line_of(error, self.path)}"
            ) from error


def described(error: BaseException) -> str:
    """Return an exception as one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def line_of(error: BaseException, path: str) -> str:
    """Return the last line of `path` that an exception came through, as FILE:LINE."""
    frames = traceback.extract_tb(error.__traceback__)
    within = [frame for frame in frames if frame.filename == path] or frames[-1:]
    return f"{within[-1].filename}:{within[-1].lineno}" if within else path


def load_all(names: Sequence[str], *, is_main: bool, world_size: int) -> tuple[UserCallback, ...]:
    """Load callbacks for a rank: all on rank 0, elsewhere those that every rank has.

    Args:
        names: values of `--callback`: FILE.py:Class or module:Class.
        is_main: this is rank 0.
        world_size: number of ranks.

    Raises:
        TrainerError: RM732 where one cannot be loaded, RM735 where it changes results on rank 0 of several alone.
    """
    loaded = [load(name) for name in names]
    for each in loaded:
        if each.callback.changes_results and not each.callback.all_ranks and world_size > 1:
            raise TrainerError("RM735", what=each.name, where=f"{world_size} ranks")
    return tuple(each for each in loaded if is_main or each.callback.all_ranks)


def load(name: str) -> UserCallback:
    """Load `FILE.py:Class` or `package.module:Class`, and make the callback.

    Raises:
        TrainerError: RM732, with the reason.
    """
    place, _, class_name = name.rpartition(":")
    if not place or not class_name.isidentifier():
        raise refused(name, "it is not FILE.py:Class or package.module:Class")
    module = module_of(name, place)
    kind = getattr(module, class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, Callback)):
        found = [n for n, each in vars(module).items() if isinstance(each, type) and issubclass(each, Callback)]
        others = ", ".join(n for n in found if n != Callback.__name__) or "none"
        raise refused(name, f"{place} has no subclass of Callback named {class_name}; it has {others}")
    path = str(module.__file__)
    try:
        callback = kind()
    except (Exception, SystemExit) as error:
        raise refused(name, described(error), line_of(error, path)) from error
    return UserCallback(
        name=name, sha256=hashlib.sha256(Path(path).read_bytes()).hexdigest(), path=path, callback=callback
    )


def module_of(name: str, place: str) -> ModuleType:
    """Return the module at `place`: a file, which cannot import its neighbours, or a module that is installed."""
    path = Path(place)
    try:
        if path.suffix != ".py":
            module = importlib.import_module(place)
        else:
            spec = importlib.util.spec_from_file_location(f"callback_{path.stem}", path.resolve(strict=True))
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # dataclasses and pickle look there
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise refused(name, described(error), line_of(error, str(path.absolute()))) from error
    if getattr(module, "__file__", None) is None:
        raise refused(name, f"{place} has no file")
    return module


def refused(name: str, why: str, where: str = "") -> TrainerError:
    """Return the error of a callback that cannot be loaded.

    Args:
        name: value of `--callback`.
        why: reason of the refusal.
        where: file and line; empty where not known.
    """
    return TrainerError("RM732", what=f"--callback {name}", where=where, why=why)
