"""The rules on variables: each fires where it should, is silent beside it, and says what is not known."""

from pathlib import Path

import pytest

from rocmatrix.doctor.environment import lint, lint_input, rules
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject
from tests.fixtures.cells import MATRIX

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
    ("nccl-debug-level", "warning", {"NCCL_DEBUG": "DEBUG"}, {"NCCL_DEBUG": "info"}),
    ("nccl-debug-level", "warning", {"NCCL_DEBUG": "1"}, {"NCCL_DEBUG": "$LEVEL"}),
    (
        "two-filters",
        "warning",
        {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"},
        {"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""},
    ),
    (
        "two-filters",
        "warning",
        {"ROCR_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0,1"},
        {"ROCR_VISIBLE_DEVICES": "0", "GPU_DEVICE_ORDINAL": "0"},  # OpenCL's alone
    ),
    (
        "two-filters",
        "warning",
        {"ROCR_VISIBLE_DEVICES": "$A", "HIP_VISIBLE_DEVICES": "$B"},
        {"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": ""},
    ),
    ("hccl-names", "error", {"HCCL_DEBUG": "1"}, {"NCCL_P2P_DISABLE": "1"}),
    ("hccl-backend-variable", "error", {"DIST_BACKEND": "hccl"}, {"DIST_BACKEND": "nccl"}),
    ("hccl-backend", "error", {"commands": ("train --backend hccl",)}, {"commands": ("train --backend nccl",)}),
    ("hccl-backend", "error", {"commands": ('init(backend="hccl")',)}, {"commands": ("install hcclib",)}),
    ("hip-disable-ipc", "error", {"HIP_DISABLE_IPC": "1"}, {"HIP_VISIBLE_DEVICES": "0"}),
    ("name-nearly-right", "warning", {"TORCH_ROCM_ARCH_LIST": "gfx1100"}, {"PYTORCH_ROCM_ARCH": "gfx1100"}),
    ("name-nearly-right", "warning", {"MIOPEN_USER_DB": "/x"}, {"MIOPEN_USER_DB_PATH": "/x"}),
    ("name-nearly-right", "warning", {"DEBUG_HIP_BLOCK_SYN": "1024"}, {"DEBUG_HIP_BLOCK_SYNC": "1024"}),
    ("name-nearly-right", "warning", {"HSA_FORCE_FINE_GRAIN_PRICE": "1"}, {"HSA_XNACK": "1"}),
    (
        "name-nearly-right",
        "warning",
        {"HIP_VISIBLE_DEVICE": "0"},
        {"HIP_VISIBLE_DEVICE": "0", "HIP_VISIBLE_DEVICES": "$HIP_VISIBLE_DEVICE"},  # a name of the file's own
    ),
    ("nccl-word-for-a-number", "error", {"NCCL_P2P_DISABLE": "True"}, {"NCCL_P2P_DISABLE": "1"}),
    ("nccl-word-for-a-number", "error", {"RCCL_MSCCL_ENABLE": "off"}, {"NCCL_P2P_LEVEL": "SYS"}),
    ("hsa-word-for-a-number", "error", {"HSA_ENABLE_SDMA": "false"}, {"HSA_NO_SCRATCH_RECLAIM": "1"}),
    ("rocblas-layer-no-number", "warning", {"ROCBLAS_LAYER": "gemm"}, {"ROCBLAS_LAYER": "0x6"}),
    ("cache-by-a-relative-path", "note", {"MIOPEN_USER_DB_PATH": "./cache"}, {"MIOPEN_USER_DB_PATH": "~/cache"}),
    ("cache-by-a-relative-path", "note", {"MIOPEN_CUSTOM_CACHE_DIR": "pwd"}, {"TRITON_CACHE_DIR": "$HOME/.triton"}),
    ("name-nearly-right", "warning", {"MIOPEN_USER_DB": "$DIR/x"}, {"PYTORCH_HIP_ALLOC_CONF": "a"}),
    ("jobs-no-number", "warning", {"MAX_JOBS": "nproc"}, {"MAX_JOBS": "8"}),
    ("jobs-no-number", "warning", {"CMAKE_BUILD_PARALLEL_LEVEL": "-j8"}, {"CMAKE_BUILD_PARALLEL_LEVEL": "16"}),
    ("jobs-no-number", "warning", {"MAX_JOBS": '"4"'}, {"MAX_JOBS": "$(nproc)"}),
    ("jobs-no-number", "warning", {"MAX_JOBS": "all"}, {"MAX_JOBS": ""}),
    ("jobs-no-number", "warning", {"MAX_JOBS": "0.5"}, {"MAX_JOBS": "`nproc`"}),
    ("visible-devices-no-list", "warning", {"ROCR_VISIBLE_DEVICES": "all"}, {"ROCR_VISIBLE_DEVICES": "0,1"}),
    ("visible-devices-no-list", "warning", {"HIP_VISIBLE_DEVICES": "All"}, {"HIP_VISIBLE_DEVICES": "GPU-1a2b"}),
    ("visible-devices-no-list", "warning", {"HIP_VISIBLE_DEVICES": "all"}, {"HIP_VISIBLE_DEVICES": "$CARDS"}),
    *(
        ("visible-devices-apart-by-other-than-commas", "error", {name: wrong}, {name: right})
        for name, wrong, right in (
            ("HIP_VISIBLE_DEVICES", "0;1", "0,1"),
            ("ROCR_VISIBLE_DEVICES", "0 1", "0, 1"),
            ("CUDA_VISIBLE_DEVICES", "0-3", "-1"),
            ("HIP_VISIBLE_DEVICES", "0,,1", ""),
            ("ROCR_VISIBLE_DEVICES", ",1", "GPU-1a2b,GPU-3c4d"),
        )
    ),
    ("visible-devices-with-blanks", "error", {"HIP_VISIBLE_DEVICES": "0, 1"}, {"ROCR_VISIBLE_DEVICES": "0, 1"}),
    ("visible-devices-with-blanks", "error", {"CUDA_VISIBLE_DEVICES": "0 ,1"}, {"CUDA_VISIBLE_DEVICES": "0,1"}),
    ("tunableop-word-for-a-number", "error", {"PYTORCH_TUNABLEOP_ENABLED": "true"}, {"PYTORCH_TUNABLEOP_ENABLED": "1"}),
    ("tunableop-no-number", "error", {"PYTORCH_TUNABLEOP_VERBOSE": "debug"}, {"PYTORCH_TUNABLEOP_VERBOSE": "3"}),
    ("tunableop-no-number", "error", {"PYTORCH_TUNABLEOP_VERBOSE": "on"}, {"PYTORCH_TUNABLEOP_VERBOSE": "$LEVEL"}),
    ("log-level-no-number", "warning", {"AMD_LOG_LEVEL": "debug"}, {"AMD_LOG_LEVEL": "4"}),
    ("hip-flag-word-for-a-number", "warning", {"HIP_LAUNCH_BLOCKING": "True"}, {"HIP_LAUNCH_BLOCKING": "true"}),
    ("hip-flag-word-for-a-number", "warning", {"GPU_MAX_HW_QUEUES": "two"}, {"GPU_MAX_HW_QUEUES": "2"}),
    ("miopen-find-mode-unknown", "warning", {"MIOPEN_FIND_MODE": "quick"}, {"MIOPEN_FIND_MODE": "dynamic_hybrid"}),
    ("miopen-find-mode-unknown", "warning", {"MIOPEN_FIND_MODE": "0"}, {"MIOPEN_FIND_MODE": "2"}),
    ("quotes-in-value", "error", {"HIP_VISIBLE_DEVICES": '"0"'}, {"HIP_VISIBLE_DEVICES": "0"}),
    ("rocm-arch-commas", "error", {"PYTORCH_ROCM_ARCH": "gfx90a,gfx942"}, {"PYTORCH_ROCM_ARCH": "gfx90a;gfx942"}),
    (
        "override-for-any-card",
        "note",
        {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"},
        {"HSA_OVERRIDE_GFX_VERSION": "11.0.0", "architectures": ("gfx1101",)},
    ),
    ("override-for-any-card", "note", {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}, {"HSA_OVERRIDE_GFX_VERSION": "$V"}),
    (
        "ggml-old-options",
        "note",
        {"commands": ("cmake -B b -DGGML_HIPBLAS=ON",)},
        {"commands": ("cmake -B b -DGGML_HIP=ON",)},
    ),
    ("ggml-old-options", "note", {"commands": ("make LLAMA_HIPBLAS=1",)}, {"commands": ("make GGML_HIP=1",)}),
    (
        "ggml-old-options",
        "note",
        {"commands": ("CMAKE_ARGS=-DLLAMA_HIPBLAS=on pip install llama-cpp-python",)},
        {"commands": ("CMAKE_ARGS=-DLLAMA_HIPBLAS=on pip install llama-cpp-python==0.2.56",)},
    ),
    ("ollama-gpu-memory", "warning", {"OLLAMA_GPU_MEMORY": "96GB"}, {"OLLAMA_GPU_OVERHEAD": "1"}),
    (
        "cuda-arch-list-of-gfx",
        "warning",
        {"commands": ("TORCH_CUDA_ARCH_LIST=gfx1151 pip install .",)},
        {"commands": ("PYTORCH_ROCM_ARCH=gfx1151 pip install .",)},
    ),
    ("cuda-arch-list-of-gfx-variable", "warning", {"TORCH_CUDA_ARCH_LIST": "gfx942"}, {"TORCH_CUDA_ARCH_LIST": "8.6"}),
    ("target-without-a-name", "error", {"AMDGPU_TARGETS": "gfx90A"}, {"AMDGPU_TARGETS": "gfx90a:xnack-;gfx1100"}),
    ("target-without-a-name", "error", {"AMDGPU_TARGETS": "gfx1030;rdna3"}, {"AMDGPU_TARGETS": "gfx10-3-generic"}),
    ("target-without-a-name", "error", {"GPU_TARGETS": "11.0.0"}, {"GPU_TARGETS": "$TARGET"}),
    ("target-without-a-name", "error", {"GPU_ARCHS": "MI300X"}, {"GPU_ARCHS": "gfx942;gfx950"}),
    ("target-without-a-name", "error", {"GPU_TARGETS": "gfx110"}, {"GPU_TARGETS": "native"}),
    (
        "apptainer-for-nvidia",
        "note",
        {"commands": ("srun singularity exec --nv a.sif python a.py",)},
        {"commands": ("srun singularity exec --nv --rocm a.sif python a.py",)},
    ),
    (
        "apptainer-for-nvidia",
        "note",
        {"commands": ("apptainer run -B /a --nv a.sif",)},
        {"commands": ("apptainer run -B /a --rocm a.sif --nv-model",)},
    ),
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
    ("targets-at-run-time", "note", {"HCC_AMDGPU_TARGET": "gfx1030"}, {"HIP_PATH": "/opt/rocm"}),
    (
        "override-not-compiled",
        "warning",
        {"HSA_OVERRIDE_GFX_VERSION": "11.5.0", "PYTORCH_ROCM_ARCH": "gfx1151"},
        {"HSA_OVERRIDE_GFX_VERSION": "11.5.1", "PYTORCH_ROCM_ARCH": "gfx1100;gfx1151"},
    ),
    (
        "override-not-compiled",
        "warning",
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "PYTORCH_ROCM_ARCH": "gfx90a gfx942:xnack-"},
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "PYTORCH_ROCM_ARCH": "gfx10-3-generic"},
    ),
    (
        "override-without-code-rdna2",
        "warning",
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.4", **OLD},
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.4", "rocm": "7.14"},
    ),
    (
        "override-without-code-rdna2",
        "note",
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.1"},
        {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"},
    ),
    (
        "override-without-code-gfx1103",
        "warning",
        {"HSA_OVERRIDE_GFX_VERSION": "11.0.3", **OLD},
        {"HSA_OVERRIDE_GFX_VERSION": "11.0.3", **NEW},
    ),
    (
        "override-without-code-gfx90c",
        "warning",
        {"HSA_OVERRIDE_GFX_VERSION": "9.0.12"},
        {"HSA_OVERRIDE_GFX_VERSION": "9.0.10"},
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
    (
        "nccl-interface-name",
        "warning",
        {"NCCL_IFNAME": "hsn"},
        {"NCCL_IFNAME": "hsn", "NCCL_SOCKET_IFNAME": "hsn"},
    ),
    (
        "cmake-source-is-an-option",
        "error",
        {"commands": ("cmake -DCOMPUTE_BACKEND=hip -S -DBNB_ROCM_ARCH=gfx1030 .",)},
        {"commands": ("cmake -DCOMPUTE_BACKEND=hip -S . -B build -DBNB_ROCM_ARCH=gfx1030",)},
    ),
    (
        "amd-smi-with-options-of-rocm-smi",
        "warning",
        {"commands": ("amd-smi --showallinfo",)},
        {"commands": ("rocm-smi --showallinfo; amd-smi static --json",)},
    ),
    ("rocm-arch-at-run-time", "note", {"PYTORCH_ROCM_ARCH": "gfx906"}, {}),
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
        {"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "0,2"},
        {"ROCR_VISIBLE_DEVICES": "1,GPU-0a1b", "HIP_VISIBLE_DEVICES": "0, 1"},
    ),
    (
        "two-filters-alike",
        "note",
        {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"},
        {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"},
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
        "folder-of-old-layout",
        "warning",
        {"commands": ("ln -s /opt/rocm/hip/lib/libamdhip64.so /venv/lib/",), **OLD},
        {"commands": ("ln -s /opt/rocm/lib/libamdhip64.so /venv/lib/",), **OLD},
    ),
    (
        "folder-of-old-layout",
        "warning",
        {"commands": ("ls /opt/rocm/hip/bin",), **NEW},
        {"rocm": "5.7", "commands": ("ls /opt/rocm/hip/bin",)},
    ),
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


def test_single_thread_is_let_be_where_several_processes_are_started():
    one = {"OMP_NUM_THREADS": "1"}
    assert "one-thread" in found(**one, commands=("python train.py",))
    assert "one-thread" not in found(**one, commands=("srun python -m torch.distributed.run train.py",))


def test_variable_read_by_a_compiler_is_let_be_where_something_is_compiled():
    rows = (Assignment(name="PYTORCH_ROCM_ARCH", value="gfx942", where="a:1"),)
    assert lint.lint([Subject(name="one", variables=rows, compiles=True)], RULES) == ()


@pytest.mark.parametrize(
    ("image", "severity"),
    [
        ("rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0", "warning"),
        ("rocm/dev-ubuntu-22.04:6.2", "warning"),
        ("rocm/pytorch:latest", "note"),
        ("rocm/pytorch:rocm7.14_ubuntu24.04_py3.12_pytorch_release_2.11.0", None),
    ],
)
def test_release_of_the_image_makes_a_finding_certain(image, severity):
    rows = (Assignment(name="HSA_OVERRIDE_GFX_VERSION", value="10.3.4", where="a:1"),)
    one = Subject(name="one", variables=rows, image=image)
    severities = {finding.rule: finding.severity for finding in lint.lint([one], RULES)}
    assert severities.get("override-without-code-rdna2") == severity


def test_rules_are_all_tested_above():
    assert {rule.id for rule in RULES} == {case[0] for case in CASES}


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
