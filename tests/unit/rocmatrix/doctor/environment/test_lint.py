"""The rules on variables: each fires where it should, is silent beside it, and says what is not known."""

import re
from pathlib import Path

import pytest

from rocmatrix.doctor.environment import lint, lint_input, rules, version_pairs
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Pair, Subject
from rocmatrix.host.hardware import survey
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import machines
from tests.fixtures.cells import GFX906, GFX1100, GFX1151, MATRIX

ROOT = Path(__file__).resolve().parents[5]
RULES = rules.load(ROOT)


def found(*, architectures=(), torch=None, rocm=None, commands=(), **variables):
    one = Subject(
        name="test",
        variables=tuple(Assignment(name=name, value=value, where="here:1") for name, value in variables.items()),
        commands=tuple(Command(text=text, where="here:2") for text in commands),
        architectures=architectures,
        torch=torch,
        rocm=rocm,
    )
    return {finding.rule: finding.severity for finding in lint.lint([one], RULES)}


NEW = {"torch": "2.12.1", "rocm": "7.2"}
OLD = {"torch": "2.5.1", "rocm": "6.2"}
CASES = [
    # rule, severity, what triggers it, the same with one thing changed that must not
    ("rccl-names", "error", {"RCCL_DEBUG": "INFO"}, {"NCCL_DEBUG": "INFO"}),
    ("rccl-names", "error", {"RCCL_BUFFSIZE": "1"}, {"RCCL_MSCCL_ENABLE": "0"}),
    ("hccl-names", "error", {"HCCL_DEBUG": "1"}, {"NCCL_P2P_DISABLE": "1"}),
    ("hccl-backend-variable", "error", {"DIST_BACKEND": "hccl"}, {"DIST_BACKEND": "nccl"}),
    ("hccl-backend", "error", {"commands": ("train --backend hccl",)}, {"commands": ("train --backend nccl",)}),
    ("hccl-backend", "error", {"commands": ('init(backend="hccl")',)}, {"commands": ("install hcclib",)}),
    ("hip-disable-ipc", "error", {"HIP_DISABLE_IPC": "1"}, {"HIP_VISIBLE_DEVICES": "0"}),
    ("hidden-kernel-flags", "error", {"ROCM_ALLOW_HIDDEN_KERNEL_FLAGS": "1"}, {"ROCM_PATH": "/opt/rocm"}),
    (
        "performance-level-invalid",
        "error",
        {"commands": ("echo performance > /sys/class/drm/card0/device/power_dpm_force_performance_level",)},
        {"commands": ("echo auto > /sys/class/drm/card0/device/power_dpm_force_performance_level",)},
    ),
    ("override-malformed", "error", {"HSA_OVERRIDE_GFX_VERSION": "11.0"}, {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}),
    ("override-malformed", "error", {"HSA_OVERRIDE_GFX_VERSION_1": "gfx1100"}, {"HSA_OVERRIDE_GFX_VERSION": "9.0.10"}),
    (
        "override-native",
        "warning",
        {"HSA_OVERRIDE_GFX_VERSION": "11.0.0", "architectures": ("gfx1100",)},
        {"HSA_OVERRIDE_GFX_VERSION": "11.0.0", "architectures": ("gfx1101",)},
    ),
    (
        "override-foreign",
        "error",
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "architectures": ("gfx906",)},
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "architectures": ("gfx1031",)},
    ),
    ("no-memory-caching", "warning", {"PYTORCH_NO_HIP_MEMORY_CACHING": "1"}, {}),
    ("serialize", "warning", {"AMD_SERIALIZE_KERNEL": "3"}, {"AMD_SERIALIZE_KERNEL": "0"}),
    ("serialize", "warning", {"HIP_LAUNCH_BLOCKING": "1"}, {"HIP_LAUNCH_BLOCKING": "0"}),
    ("hsa-disable-cache", "warning", {"HSA_DISABLE_CACHE": "1"}, {"HSA_DISABLE_CACHE": "0"}),
    ("interrupts-off", "warning", {"HSA_ENABLE_INTERRUPT": "0"}, {"HSA_ENABLE_INTERRUPT": "1"}),
    ("sdma-off", "warning", {"HSA_ENABLE_SDMA": "0"}, {"HSA_ENABLE_SDMA": "1"}),
    ("fragment-allocator-off", "warning", {"HSA_DISABLE_FRAGMENT_ALLOCATOR": "1"}, {}),
    ("thunk-internals", "warning", {"HSA_USE_SVM": "0"}, {}),
    ("runtime-log", "warning", {"AMD_LOG_LEVEL": "4"}, {"AMD_LOG_LEVEL": "0"}),
    ("miopen-no-cache", "warning", {"MIOPEN_DISABLE_CACHE": "1"}, {"MIOPEN_DISABLE_CACHE": "0"}),
    ("miopen-logging", "warning", {"MIOPEN_ENABLE_LOGGING": "1"}, {"MIOPEN_ENABLE_LOGGING": "off"}),
    ("miopen-log-default", "note", {"MIOPEN_LOG_LEVEL": "4"}, {"MIOPEN_LOG_LEVEL": "3"}),
    ("dev-kernarg", "note", {"HIP_FORCE_DEV_KERNARG": "1", **OLD}, {"HIP_FORCE_DEV_KERNARG": "1", "rocm": "6.1"}),
    (
        "xnack-unsupported",
        "warning",
        {"HSA_XNACK": "1", "architectures": ("gfx1100",)},
        {"HSA_XNACK": "1", "architectures": ("gfx90a",)},
    ),
    (
        "fine-grain-pcie",
        "warning",
        {"HSA_FORCE_FINE_GRAIN_PCIE": "1", **OLD},
        {"HSA_FORCE_FINE_GRAIN_PCIE": "1", "rocm": "5.6"},
    ),
    ("rocm-arch-at-run-time", "warning", {"PYTORCH_ROCM_ARCH": "gfx906"}, {}),
    (
        "expandable-segments",
        "warning",
        {"PYTORCH_HIP_ALLOC_CONF": "expandable_segments:True", **OLD},
        {"PYTORCH_HIP_ALLOC_CONF": "expandable_segments:True", **NEW},
    ),
    (
        "expandable-segments-old-rocm",
        "warning",
        {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "torch": "2.12.1", "rocm": "6.4"},
        {"PYTORCH_ALLOC_CONF": "expandable_segments:True", **NEW},
    ),
    (
        "expandable-segments-young",
        "note",
        {"PYTORCH_ALLOC_CONF": "expandable_segments:True", **NEW},
        {"PYTORCH_ALLOC_CONF": "expandable_segments:False", **NEW},
    ),
    (
        "garbage-collection-threshold",
        "warning",
        {"PYTORCH_HIP_ALLOC_CONF": "garbage_collection_threshold:0.95"},
        {"PYTORCH_HIP_ALLOC_CONF": "max_split_size_mb:512"},
    ),
    (
        "flight-recorder-without-buffer",
        "note",
        {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
        {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"},
    ),
    (
        "hipblaslt-preference-ignored",
        "note",
        {"TORCH_BLAS_PREFER_HIPBLASLT": "0", "torch": "2.9.1", "rocm": "6.4"},
        {"TORCH_BLAS_PREFER_HIPBLASLT": "0", **OLD},
    ),
    (
        "hipblaslt-preference-ignored",
        "note",
        {"TORCH_BLAS_PREFER_HIPBLASLT": "0", "torch": "2.7.1", "rocm": "6.3"},
        {"TORCH_BLAS_PREFER_HIPBLASLT": "0", **NEW},
    ),
    (
        "two-filters",
        "warning",
        {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"},
        {"ROCR_VISIBLE_DEVICES": "1"},
    ),
    (
        "visible-lists-differ",
        "error",
        {"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"},
        {"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0"},
    ),
    (
        "allocator-options-void",
        "warning",
        {"PYTORCH_NO_HIP_MEMORY_CACHING": "1", "PYTORCH_HIP_ALLOC_CONF": "max_split_size_mb:512"},
        {"PYTORCH_NO_HIP_MEMORY_CACHING": "1"},
    ),
    ("legacy-ipc", "warning", {"HSA_ENABLE_IPC_MODE_LEGACY": "1"}, {"HSA_ENABLE_IPC_MODE_LEGACY": "0"}),
    (
        "small-splits",
        "note",
        {"PYTORCH_HIP_ALLOC_CONF": "max_split_size_mb:32"},
        {"PYTORCH_HIP_ALLOC_CONF": "max_split_size_mb:256"},
    ),
    ("one-thread", "warning", {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1", "WORLD_SIZE": "2"}),
    ("hip-path-layout", "warning", {"HIP_PATH": "/opt/rocm/hip"}, {"HIP_PATH": "/opt/rocm"}),
    (
        "async-alloc",
        "error",
        {"PYTORCH_HIP_ALLOC_CONF": "backend:cudaMallocAsync", **NEW},
        {"PYTORCH_HIP_ALLOC_CONF": "backend:native", **NEW},
    ),
    ("miopen-cache-lost", "note", {"MIOPEN_USER_DB_PATH": "/tmp/miopen"}, {"MIOPEN_USER_DB_PATH": "/cache/miopen"}),
]


@pytest.mark.parametrize(("rule", "severity", "fires", "silent"), CASES)
def test_rule_fires_and_is_silent_next_to_it(rule, severity, fires, silent):
    assert found(**fires).get(rule) == severity
    assert rule not in found(**silent)


def test_rules_are_all_tested_above():
    assert {rule.id for rule in RULES} == {case[0] for case in CASES}


def test_unknown_fact_of_a_run_makes_a_finding_a_note_with_its_condition():
    variables = (Assignment(name="HSA_XNACK", value="1", where="here"),)
    (finding,) = lint.lint([Subject(name="x", variables=variables)], RULES)
    assert finding.severity == "note"
    assert finding.condition.startswith("on gfx1030, ")
    assert "reported" in finding.source or "verified in source" in finding.source


def test_errors_come_first_and_an_inherited_variable_is_reported_once():
    rows = (
        Assignment(name="AMD_LOG_LEVEL", value="4", where="a:1"),
        Assignment(name="HIP_DISABLE_IPC", value="1", where="a:2"),
    )
    findings = lint.lint([Subject(name="one", variables=rows), Subject(name="two", variables=rows)], RULES)
    assert [(f.rule, f.subject) for f in findings] == [("hip-disable-ipc", "one"), ("runtime-log", "one")]


def test_matrix_cells_set_no_variable_that_a_rule_is_against():
    findings = lint.lint([lint_input.of_cell(cell) for cell in MATRIX.cells], RULES)
    assert [f for f in findings if f.severity != "note"] == []


def test_shell_is_judged_on_the_cards_of_the_host_or_as_the_cell_it_will_run(tmp_path):
    hardware = survey(machines.mi50(tmp_path))
    shell = {"HSA_OVERRIDE_GFX_VERSION": "9.0.6", "TORCH_BLAS_PREFER_HIPBLASLT": "0"}
    rule = {f.rule: f for f in lint.lint([lint_input.of_shell(shell, hardware)], RULES)}
    assert (rule["override-native"].severity, rule["hipblaslt-preference-ignored"].condition is None) == (
        "warning",
        False,
    )
    sure = {f.rule for f in lint.lint([lint_input.of_shell(shell, hardware, GFX906)], RULES)}
    assert sure == {"override-native", "hipblaslt-preference-ignored"}
    assert {f.rule for f in lint.lint([lint_input.of_shell(shell, hardware, GFX1151)], RULES)} == {"override-foreign"}


def pair(torch, rocm):
    one = Subject(name="x", pairs=(Pair(torch=torch, rocm=rocm, where="here:3"),))
    return [(f.severity, f.truth) for f in version_pairs.unbuilt([one], MATRIX)]


def test_pairs_that_were_built_are_silent():
    assert pair("==2.5.1", "6.2") == pair("==2.4.1", "6.0") == pair("", "6.3") == pair(">=2.6", "6.3") == []
    assert pair("==2.7.*", "6.3") == []


@pytest.mark.parametrize(
    ("torch", "rocm", "severity", "words"),
    [
        ("==2.5.1", "6.3", "error", "was built for ROCm 6.1, 6.2; ROCm 6.3 carries torch 2.7.0"),
        ("==2.4.1", "6.2", "error", "6.0, 6.1"),
        ("==2.9.1", "7.1", "error", "6.3, 6.4"),
        ("", "5.8", "error", "no release of torch was built for ROCm 5.8"),
        ("==99.0", "7.2", "note", "newer than the matrix knows"),
    ],
)
def test_pairs_that_were_never_built(torch, rocm, severity, words):
    ((told, truth),) = pair(torch, rocm)
    assert (told, words in truth) == (severity, True), truth


def test_mistake_in_the_rules_is_reported_with_its_line(tmp_path):
    text = (ROOT / rules.ENVIRONMENT_FILE).read_text()
    (tmp_path / "matrix").mkdir()
    broken = text.replace("severity: error", "severity: fatal", 1).replace('value: "(?i)^hccl$"', 'value: "(?i^hccl$"')
    (tmp_path / rules.ENVIRONMENT_FILE).write_text(broken.replace("instead: nothing\n", "insted: nothing\n"))
    with pytest.raises(RocmatrixError) as caught:
        rules.load(tmp_path)
    told = str(caught.value)
    assert caught.value.code == "RM001"
    assert f"matrix/environment.yaml:{_line(broken, 'severity: fatal')}: " in told
    assert "is no pattern" in told
    assert "unknown key 'insted'; did you mean instead" in told


def test_rule_needs_one_subject_and_an_id_of_its_own(tmp_path):
    text = (ROOT / rules.ENVIRONMENT_FILE).read_text()
    (tmp_path / "matrix").mkdir()
    (tmp_path / rules.ENVIRONMENT_FILE).write_text(re.sub(r"  names: \[HIP_DISABLE_IPC\]\n", "", text))
    with pytest.raises(RocmatrixError, match="either names or a command"):
        rules.load(tmp_path)
    (tmp_path / rules.ENVIRONMENT_FILE).write_text(text.replace("id: sdma-off", "id: interrupts-off"))
    with pytest.raises(RocmatrixError, match="'interrupts-off' is given a second time"):
        rules.load(tmp_path)


def test_architectures_of_rules_are_known_to_the_matrix():
    named = {name for rule in RULES for name in rule.when.architectures or ()}
    assert named <= set(MATRIX.architectures)
    assert matrix_file.load(ROOT).cell(GFX1100.name).name == GFX1100.name


def _line(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)
