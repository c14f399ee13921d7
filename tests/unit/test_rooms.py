"""The tree stays one that a newcomer can read: few names in a root, few modules in a room, and the contracts hold."""

import configparser
import graphlib
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

from rocmatrix.cli.commands.project import LINT_IMPORTS

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("rocmatrix", "trainer")
MOST_NAMES, MOST_MODULES = 15, 12
ONE_A_TOPIC = {"rocmatrix/cli/commands"}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def names(folder: Path) -> set[str]:
    """What a person sees in a folder: modules and rooms, without `__init__` and what is hidden."""
    return {
        path.name for path in folder.iterdir() if path.name[0] != "." and not path.name.startswith(("__init", "__pyc"))
    }


def modules(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def rooms() -> list[Path]:
    return [path.parent for program in PROGRAMS for path in sorted((ROOT / program).rglob("__init__.py"))]


@pytest.mark.parametrize("program", PROGRAMS)
def test_root_lists_at_most_fifteen_names(program):
    assert 1 < len(names(ROOT / program)) <= MOST_NAMES


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.relative_to(ROOT).as_posix())
def test_room_holds_at_most_twelve_modules(room):
    if room.relative_to(ROOT).as_posix() not in ONE_A_TOPIC:
        assert len(modules(room)) <= MOST_MODULES


@pytest.mark.parametrize("program", PROGRAMS)
def test_folders_with_modules_are_packages(program):
    assert {path.parent for path in (ROOT / program).rglob("*.py")} <= set(rooms())


def run_contracts(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", LINT_IMPORTS], cwd=folder, capture_output=True, text=True, check=False)


def test_rooms_import_downwards_only():
    done = run_contracts(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kept, 0 broken" in done.stdout


def circle(graph: grimp.ImportGraph) -> list[str]:
    """Return modules that import each other in a circle, lazy and type-only imports included; none without one."""
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_modules_import_each_other_in_no_circle():
    assert circle(grimp.build_graph(*PROGRAMS)) == []


def test_circle_of_two_modules_is_found():
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c")):
        graph.add_import(importer=importer, imported=imported)
    assert circle(graph) == []
    graph.add_import(importer="c", imported="b")
    assert {*circle(graph)} == {"b", "c"}


def test_contracts_have_no_exception():
    assert len(CONTRACTS) == 3
    assert not any(key.startswith(("ignore", "exhaustive_ignores")) for contract in CONTRACTS for key in contract)


def test_import_upwards_breaks_its_contract(tmp_path):
    """The same layers over a small tree of the same rooms, with one import that runs up."""
    for contract in CONTRACTS[:2]:
        (program,) = contract["containers"]
        for room in [name for line in contract["layers"] for name in line.replace("|", " ").split()]:
            (tmp_path / program / room).mkdir(parents=True)
            (tmp_path / program / room / "__init__.py").write_text("")
        (tmp_path / program / "__init__.py").write_text("")
    config = configparser.ConfigParser()
    config["importlinter"] = {"root_packages": "\n".join(["", *PROGRAMS])}
    for contract in CONTRACTS[:2]:
        lists = {key: "\n".join(["", *contract[key]]) for key in ("containers", "layers")}
        config[f"importlinter:contract:{contract['id']}"] = {"name": contract["id"], "type": "layers", **lists}
    with (tmp_path / ".importlinter").open("w") as file:
        config.write(file)
    assert run_contracts(tmp_path).returncode == 0
    (tmp_path / "trainer" / "runtime" / "__init__.py").write_text("from trainer import engine\n")
    broken = run_contracts(tmp_path)
    assert broken.returncode == 1
    assert "trainer.runtime is not allowed to import trainer.engine" in broken.stdout
