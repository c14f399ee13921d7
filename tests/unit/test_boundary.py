"""The two programs share no imports, and what must be instant imports nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def imports(folder):
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name.split(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                yield path, node.module.split(".")[0]


def test_host_side_imports_neither_torch_nor_trainer():
    found = list(imports("rocmatrix"))
    assert len(found) > 50
    assert [(path, name) for path, name in found if name in ("torch", "trainer", "numpy")] == []


def test_trainer_imports_no_rocmatrix():
    found = list(imports("trainer"))
    assert len(found) > 50
    assert [(path, name) for path, name in found if name in ("rocmatrix", "invoke", "docker", "pydantic")] == []


def module_graph(package):
    graph = {}
    for path in (ROOT / package).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        graph[module] = set()
        for node in ast.parse(path.read_text()).body:  # imports at the top of a module; lazy ones cannot circle
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package):
                graph[module] |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {module: targets & set(graph) for module, targets in graph.items()}


@pytest.mark.parametrize("package", ["rocmatrix", "trainer"])
def test_imports_have_no_circle(package):
    graph = module_graph(package)
    state = {}

    def visit(module, path):
        assert state.get(module) != "open", " -> ".join([*path, module])
        if module in state:
            return
        state[module] = "open"
        for target in graph[module] - {module, package}:
            visit(target, [*path, module])
        state[module] = "done"

    for module in graph:
        visit(module, [])
    assert len(state) > 10


@pytest.mark.parametrize(
    ("argv", "heavy"),
    [
        (["-m", "invoke", "--list"], {"torch", "docker", "pydantic", "jinja2", "rich"}),
        (["-m", "trainer", "--help"], {"torch", "numpy", "safetensors"}),
        (["-m", "trainer", "bench", "--help"], {"torch", "numpy", "safetensors"}),
    ],
)
def test_help_imports_nothing_heavy(argv, heavy):
    command = [sys.executable, "-X", "importtime", *argv]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert loaded
    assert loaded & heavy == set()
