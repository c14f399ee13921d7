"""Every shipped signature finds its own sample first, names rules that exist, and cannot run away."""

from typing import get_args

import pytest

from rocmatrix.diagnosis import diagnosis, signature
from rocmatrix.doctor.examination import CHECKS
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.errors import RocmatrixError
from tests.unit.rocmatrix.diagnosis.known import ROOT, SIGNATURES, best, ranked, signatures_of


def test_sample_is_found_and_is_its_own_best_match():
    """In one test, as those in test_pattern and test_literals: a thousand of a millisecond take longer to hand out."""
    found = {one.id: best(one.sample) for one in SIGNATURES}
    assert {name: other for name, other in found.items() if name != other} == {}


@pytest.mark.parametrize(
    "line",
    [
        "cmake -S . -B build -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DGPU_TARGETS=gfx942",
        "/home/u/AMDMIGraphX/src/onnx/parse.cpp:12:5: warning: unused variable 'x' [-Wunused-variable]",
        "rocblas_gemm_ex returned rocblas_status_success\nall tests passed",
        "cudnnCreate: CUDNN_STATUS_SUCCESS",
        "hipGetDeviceCount returned hipError_t(0)",
        "Setting up roctracer (4.1.60400) ...\nSetting up libgpg-error0",
        "vfio-pci 0000:03:00.0: resetting\nvfio-pci 0000:03:00.0: reset done",
        "rocr: hsa_init returned HSA_STATUS_SUCCESS",
        "[3/9] Building CXX object hipamd/src/hiprtc/hiprtcInternal.cpp.o -Wall -Werror",
        "FlashInfer is not supported on ROCm, falling back to Triton.",
        "CMake Warning: ROCM_PATH is not set, using /opt/rocm",
        "NET/Plugin: Plugin load (librccl-net.so) returned 2 : librccl-net.so: cannot open shared object file",
        " - torch==2.9.1+rocm6.4\n + torch==2.9.1+rocm7.0\n + torchvision==0.24.1+rocm7.0",
        "NCCL INFO TUNER/Plugin: Failed to open librccl-tuner.so: librccl-tuner.so: cannot open shared object file",
        "UserWarning: Please update transformers to use this feature.",
        "Could not load dynamic library 'libcudart.so.11.0'; "
        "dlerror: libcudart.so.11.0: cannot open shared object file\n"
        "Ignore above cudart dlerror if you do not have a GPU set up on your machine.",
        "fatal: No names found, cannot describe anything.\nfatal: not a git repository: no version from git",
        "running 12 tests\ntest result: ok. 12 passed; assertions: 40; 0 failed",
        "update-alternatives: error: no alternatives for rocminfo",
        "ERROR: GPU[0]\t: sclk frequency is unsupported",
        "Sign command: /usr/bin/kmodsign\nBinary update-secureboot-policy not found, modules won't be signed\nDone.",
        "debconf: (Can't locate Term/ReadLine.pm in @INC (you may need to install the Term::ReadLine module) (@INC "
        "contains: /etc/perl) at /usr/share/perl5/Debconf/FrontEnd/Readline.pm line 7.)\n"
        "debconf: falling back to frontend: Teletype",
        'level=error msg="failed to load cni during init, please check CRI plugin status before setting up network for '
        'pods" error="cni config load failed: no network config found in /etc/cni/net.d: cni plugin not initialized"',
        "[system] Activation via systemd failed for unit 'dbus-org.freedesktop.resolve1.service': Unit "
        "dbus-org.freedesktop.resolve1.service not found.",
        "url_helper.py[WARNING]: Calling 'http://169.254.169.254/latest/api/token' failed [0/240s]: request error "
        "[HTTPConnectionPool(host='169.254.169.254', port=80): Max retries exceeded with url: /latest/api/token]",
        "null_resource.wait (local-exec): ssh: connect to host 10.0.0.5 port 22: Connection refused\n"
        "null_resource.wait (local-exec): retrying in 10 s",
        "[W1120 10:00:05 socket.cpp:697] [c10d] The client socket has failed to connect to [node1]:29500 (errno: 111 "
        "- Connection refused).",
        "srun: Job 88123 step creation temporarily disabled, retrying (Requested nodes are busy)\n"
        "srun: Step created for StepId=88123.1",
        "Manually-specified variables were not used by the project:\n\n    AMDGPU_TARGETS\n    LLAMA_HIPBLAS",
        "WSL (1 - init(Ubuntu-24.04)) ERROR: CheckConnection: getaddrinfo() failed: -5",
        'Warning  FailedMount  pod/dp-x  MountVolume.SetUp failed for volume "kube-root-ca.crt" : failed to sync '
        "configmap cache: timed out waiting for the condition",
        'ERROR Reconciler error {"controller": "DeviceConfig", "error": "Operation cannot be fulfilled on '
        'deviceconfigs.amd.com: the object has been modified; please apply your changes to the latest version"}',
        "[ RUN      ] Unit_hipGetDevice_hipErrorInvalidDevice\n"
        "[       OK ] Unit_hipGetDevice_hipErrorInvalidDevice (2 ms)",
        "      Start  1: codes.hipErrorInvalidDevice\n"
        " 1/24 Test  #1: codes.hipErrorInvalidDevice ...   Passed    0.41 sec",
        "tests/test_errors.py::test_raises[RuntimeError: HIP error: invalid device function] PASSED [  3%]",
        "XFAIL tests/test_errors.py::test_failed_allocation - reason: torch.OutOfMemoryError: HIP out of memory",
        'CMake Warning at CMakeLists.txt:77 (find_package):\n  By not providing "Findrocsparse.cmake" in '
        "CMAKE_MODULE_PATH this project\n  has asked CMake to find a package configuration file provided by\n"
        '  "rocsparse", but CMake did not find one.\n\n  Could not find a package configuration file provided by '
        '"rocsparse" with any\n  of the following names:\n\n    rocsparseConfig.cmake\n',
        "/usr/bin/ld: cannot find -lcufile: No such file or directory",
        'level=WARN source=sched.go:649 msg="gpu VRAM usage didn\'t recover within timeout" seconds=5.1',
        "Setup Custom allreduce failed with No such file or directory: 'nvidia-smi'. To silence this warning, specify "
        "--disable-custom-all-reduce explicitly.",
        "Ignore import error when loading sglang.srt.models.glm4v: cannot import name 'Glm4vVisionConfig' from "
        "'transformers'",
        "WARNING  Failed to load flash-attention due to the following error: No module named 'flash_attn_2_cuda'",
        "Error retrieving safetensors: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
        "'/models/Qwen3-8B'. Use `repo_type` argument if needed., retrying 1 of 2",
        "[00:04.120 --> 00:07.120]  Segmentation fault, they said.",
        "Warning: Could not load sageattention: No module named 'sageattention'",
        'msg="amdgpu detected, but no compatible rocm library found.  Either install rocm v6" gpu_type=gfx1036',
        "A tensor with all NaNs was produced in VAE.\nWeb UI will now convert VAE into 32-bit float and retry.",
        "/usr/bin/ld: cannot find -lcufile: No such file or directory\ncollect2: error: ld returned 1 exit status",
        "out of resource: shared memory, Required: 81920, Hardware limit: 65536. Reducing block sizes or "
        "`num_stages` may "
        "help. for benchmark choice TritonTemplateCaller(/tmp/torchinductor_root/ab/cab.py, BLOCK_K=64)",
        "No valid triton configs. OutOfMemoryError: out of resource: triton_mm Required: 81920\nIgnoring this choice.",
        "Trial 3 failed with parameters: {'lr': 0.01} because of the following error: OutOfMemoryError('HIP "
        "out of memory. "
        "Tried to allocate 8.00 GiB.').",
        "Found comfy_kitchen backend triton: {'available': False, 'disabled': True, 'unavailable_reason': "
        '"ImportError: No '
        "module named 'triton'\"}",
        "Specified provider 'ROCMExecutionProvider' is not in available provider names.Available providers: "
        "'MIGraphXExecutionProvider, CPUExecutionProvider'",
        "wandb: ERROR Error while calling W&B API: context deadline exceeded, retrying",
        "WARNING:root:Some parameters are on the meta device because they were offloaded to the cpu.",
        "Failed to get model SHA for ./out at revision main. Error: Repo id must be in the form 'repo_name'",
        "[W1120 10:00:01.1 socket.cpp:755] [c10d] The client socket has failed to connect to [node1]:29500 "
        "(errno: 111 - "
        "Connection refused).",
        "INFO:2025-11-20 12:10:00,200:jax._src.xla_bridge:924: Unable to initialize backend 'cuda': Unable to "
        "load CUDA.",
        "Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback.",
    ],
)
def test_line_of_a_run_without_failure_names_none(line):
    assert ranked(line).failures == ()


@pytest.mark.parametrize(
    ("line", "known"),
    [
        (
            "srun: error: Unable to allocate resources: Unable to contact slurm controller",
            "slurm-controller-unreachable",
        ),
        ("salloc: error: Unable to allocate resources: Invalid qos specification", "slurm-submission-refused"),
        ("sinfo: error: Invalid partition", "slurm-submission-refused"),
        (
            f"CUDA error 98 at /tmp/{'a-b_c/' * 30}ggml-cuda.cu:66: invalid device function",
            "hip-invalid-device-function",
        ),
        ("load native runtime x: libhipfft.so.0: cannot open shared object file: No such file", "libamdhip64-missing"),
        ("error: unknown flag: --show-events\nSee 'kubectl logs --help' for usage.", "option-unrecognized"),
        ("unknown flag: --gpus\nSee 'docker run --help'.", "docker-option-unknown"),
        ("libzzz-two.so.1: cannot open shared object file: No such file or directory", "library-not-opened"),
        ("COPY failed: file not found in build context or excluded by .dockerignore", "docker-context-file-missing"),
        ("RuntimeError: Compiler: g++ is not found.", "c-compiler-missing"),
        ("RuntimeError: storage has wrong byte size: expected 4096 got 64", "checkpoint-damaged"),
        ("RuntimeError: Tensors must be CUDA and dense", "ddp-module-misplaced"),
    ],
)
def test_line_of_a_failure_names_its_own_cause(line, known):
    assert best(line) == known


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("RuntimeError: SP peer copy failed: 700", "docker-context-file-missing"),
        ("ValueError: Rendering a tool_reference requires `tools`; none are given", "command-not-found"),
        ("ValueError: Argument dtype mismatch: expected torch.float16, got torch.int8", "option-unrecognized"),
        ("ValueError: Invalid partition string: 0-3", "slurm-submission-refused"),
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", "fp8-unsupported"),
    ],
)
def test_line_of_another_program_is_not_taken(line, other):
    assert other not in signatures_of(f"Traceback (most recent call last):\n{line}\n")


def test_rules_that_are_named_exist():
    known = {rule.id for rule in diagnosis.every_rule(matrix_file.load(ROOT))}
    assert len(known) > 100
    named = {rule for one in SIGNATURES for rule in one.rules}
    assert named
    assert named <= known


ENTRY = """
- id: one
  title: a title
  kind: cause
  area: driver
  match: ['some fixed text']
  sample: some fixed text
  cause: a cause
  remedy: a remedy
  evidence: {sources: [a source], confidence: reported, date: "2026-11-21"}
  checked: in the report
"""


def written(root, **files):
    """Write the file of each area; empty where none is given."""
    for area in get_args(signature.Area):
        file = root / signature.file_of(area)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files.get(area, "[]\n"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("kind: cause", "kind: guess"), ":4: .*kind"),
        (("some fixed text']", "(a+)+ fixed text']"), ":6: .*inside another"),
        (("remedy: a remedy", "remedys: a remedy"), ":9: .*did you mean remedy"),
        (("id: one", "id: one\n  refines: [two]"), "refines 'two', which is none"),
        (("checked: in the report", "checked: surely"), ":11: .*checked"),
    ],
)
def test_mistake_is_reported_with_its_line(tmp_path, wrong, message):
    written(tmp_path, driver=ENTRY.replace(*wrong))
    with pytest.raises(RocmatrixError, match=message):
        signature.load(tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"driver": ENTRY + ENTRY}, r"signatures/driver\.yaml: 'one' is given more than once"),
        ({"driver": ENTRY, "host": ENTRY.replace("area: driver", "area: host")}, "'one' is given more than once"),
        ({"host": ENTRY}, r"host\.yaml: 'one' is of the area driver; it stands in .*/driver\.yaml"),
    ],
)
def test_sound_file_is_read_and_an_id_given_twice_or_in_another_areas_file_is_reported(tmp_path, files, message):
    written(tmp_path, driver=ENTRY)
    assert [one.id for one in signature.load(tmp_path)] == ["one"]
    written(tmp_path, **files)
    with pytest.raises(RocmatrixError, match=message):
        signature.load(tmp_path)


def test_missing_file_of_an_area_is_named(tmp_path):
    written(tmp_path, driver=ENTRY)
    (tmp_path / signature.file_of("memory")).unlink()
    with pytest.raises(RocmatrixError, match=r"memory\.yaml"):
        signature.load(tmp_path)


def test_two_that_refine_each_other_are_refused_as_both_would_be_hidden(tmp_path):
    pair = ENTRY.replace("id: one", "id: one\n  refines: [two]") + ENTRY.replace("id: one", "id: two\n  refines: [one]")
    written(tmp_path, driver=pair)
    with pytest.raises(RocmatrixError, match="'one' refines itself by way of others"):
        signature.load(tmp_path)


def test_checks_that_causes_name_are_those_of_doctor():
    named = {code for one in SIGNATURES for cause in one.causes for code in cause.host}
    assert named
    assert named <= {check.code for check in CHECKS}


def test_remedies_with_a_variable_that_some_torch_ignores_name_those_versions():
    advising = [one for one in SIGNATURES if "TORCH_BLAS_PREFER_HIPBLASLT=0" in one.remedy]
    assert len(advising) == 7
    for one in advising:
        assert "2.7 to 2.11" in one.remedy or one.when.torch == ">=2.5.0.dev0,<2.7", one.id


def test_signature_asks_to_be_looked_at_again_a_year_after_its_sources_were_read():
    rows = tuple(signature.statements(ROOT))
    assert [row.entry for row in rows] == [one.id for one in SIGNATURES]
    assert not any(row.expired(row.expires) for row in rows)
    assert {row.age_days(row.expires) for row in rows} <= {365, 366}
    assert all(row.expired("2030-01-01") for row in rows)


def test_words_that_a_program_of_ones_own_prints_too_are_not_put_down_to_releases_alone():
    by_id = {one.id: one for one in signature.load(ROOT)}
    for name in ("argument-unknown", "python-import-name-missing", "hip-source-torch-mismatch"):
        assert "own" in by_id[name].cause
