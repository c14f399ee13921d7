# ruff: noqa: E501 (messages stand as programs print them)
"""Classes of causes: a message of an unseen program is answered with the class's cause and the values of its line.

The names of programs, packages and hosts in these messages are made up; the forms are those that the tools print.
"""

import re

import pytest

from benchmarks.diagnose_cases import answers, diagnosed, listed
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, listed_causes

KNOWN = tuple(SIGNATURES)


CLASSES = (
    # a name that the package manager does not know
    ("No match for argument: rocm-foo-runtime\n", "rpm-package-unknown", "rocm-foo-runtime"),
    ("guix install: error: rocm-foo: unknown package\n", "package-name-unknown", "rocm-foo"),
    ("error: no matching package named `foo-hip` found\n", "package-name-unknown", "foo-hip"),
    # two packages of releases that do not go together
    ("foovision 0.1 requires torch==2.1.2, but you have torch 2.6.0 which is incompatible.\n", "pip-companion-conflict", "foovision"),
    # network and disk
    ("ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403 Forbidden'))\n", "download-failed", "proxy"),
    ("E: You don't have enough free space in /var/cache/apt/archives/.\n", "no-space-left-on-device", "full"),
    ("sqlite3.OperationalError: database is locked\n", "database-locked", "lock"),
    # git's own refusal to overwrite files is no failed fetch
    ("CONFLICT (content): Merge conflict in foo.py\nAutomatic merge failed; fix conflicts\n", "git-merge-refused", "both states"),
    ("error: The following untracked working tree files would be overwritten by merge:\n", "git-merge-refused", "both states"),
    # names of CUDA in any project, at the compiler and at the linker
    ("src/foo.cu:12:5: error: use of undeclared identifier 'cudaFooAsync'\n", "cuda-name-in-source", "cudaFooAsync"),
    ("error: use of undeclared identifier '__syncwarp'\n", "cuda-name-in-source", "__syncwarp"),
    ("ld.lld: error: undefined symbol: cudaFooPitch\n", "linker-cuda-symbol", "cudaFooPitch"),
    ("/usr/bin/ld: foo.o: undefined reference to `cuModuleLoadFoo'\n", "linker-cuda-symbol", "cuModuleLoadFoo"),
    ("ModuleNotFoundError: No module named 'cuda.bindings'\n", "flashinfer-not-for-rocm", "cuda.bindings"),
    ("pynvml.nvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found\n", "nvml-not-here", "NVIDIA"),
    ("docker: Error response from daemon: unknown or invalid runtime name: foo\n", "docker-runtime-unknown", "foo"),
    # an architecture that compiler, program or code object does not have
    ("clang: error: unknown target CPU 'gfx1299'\n", "compiler-architecture-unknown", "gfx1299"),
    ("ValueError: gfx1299 is not in the list of supported architectures ['gfx90a', 'gfx942']\n", "architecture-not-accepted", "architecture"),
    ("HSA code object ISA amdgcn-amd-amdhsa--gfx1299 is incompatible with agent\n", "code-object-other-isa", "gfx1299"),
    # the loader's two names of a line: the missing one is meant
    ("Error loading library /opt/foo/libfooHIP.so: libhipfft.so.0: cannot open shared object file: No such file or directory\n", "libamdhip64-missing", "libhipfft.so.0"),
    ("AttributeError: 'NoneType' object has no attribute 'foo_conv1d_fwd'\n", "extension-import-none", "foo_conv1d_fwd"),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pip-install-ab12/foo_34/csrc/foo.cpp'\n", "source-tree-incomplete", "sources"),
    # clusters, permissions, accounts
    ("sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification\n", "slurm-gres-unknown", "gres"),
    ("ssh: connect to host node-foo port 22: Connection refused\n", "ssh-failed", "node-foo"),
    ("Lmod has detected the following error: The following module(s) are unknown: \"rocm/9.9\"\n", "environment-module-unknown", "rocm/9.9"),
    ("getpwuid(): uid not found: 4711\n", "user-id-unknown", "user"),
    ("mpirun has detected an attempt to run as root.\n", "mpi-run-as-root", "root"),
    ("sudo: a terminal is required to read the password\n", "sudo-refused", "root"),
    ("modprobe: ERROR: could not insert 'amdgpu': Operation not permitted\n", "module-not-permitted", "root"),
    # a compiler's own fault, a library that ldd does not find, a value that an option does not take
    ("foo.cpp:7:1: internal compiler error: in foo_expand, at foo.c:1234\n", "compiler-crashed", "in foo_expand"),
    ("\tlibfoo-render.so.4 => not found\n", "library-not-opened", "libfoo-render.so.4"),
    ("error: invalid value 'foo' for --backend: possible values are bar, baz\n", "option-unrecognized", "value"),
    ("error: invalid value: foo\n", "option-unrecognized", "value"),
    ("TypeError: foo_attn_varlen() got an unexpected keyword argument 'bar'\n", "argument-unknown", "foo_attn_varlen"),
    ("CMake Error: File /srv/foo/src/hip/FooConfig.h.in does not exist.\n", "sources-not-hipified", "hipify"),
    ("/srv/foo/bar.o: file not recognized: File format not recognized\n", "object-file-of-other-format", "linked"),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/nfs/foo/triton_cache/AB12/bar.hsaco'\n", "kernel-cache-shared", "cache"),
    # drivers, packages, containers and schedulers whose message names a value
    ("drmn0: could not load firmware image 'amdgpu/foo_sos.bin'\n", "freebsd-firmware-not-loaded", "amdgpu/foo_sos.bin"),
    ("E: Package 'linux-headers-9.9.9-foo' has no installation candidate\n", "kernel-headers-not-in-archive", "9.9.9-foo"),
    ("Unsupported DEB-based OS: /etc/os-release ID 'foo'\n", "installer-distribution-unknown", "foo"),
    ("Could not find rocm library 'foo' at path 'bin,' no match for pattern 'foo9.dll'\n", "rocm-sdk-library-pattern", "foo"),
    ("Windows has stopped this device because it has reported problems. (Code 43)\n", "windows-device-code", "43"),
    ("Device::callbackQueue aborting with status: 0x1016\n", "hsa-callback-status", "exception"),
    ("amdgpu 0000:03:00.0: probe with driver amdgpu failed with error -62\n", "amdgpu-init-failed", "card"),
    # compilers of the host
    ("#error \"C++17 or later compatible compiler is required to use Foo.\"\n", "cxx-standard-too-old", "standard"),
    ("#error -- unsupported GNU version! gcc versions later than 12 are not supported!\n", "host-compiler-version-refused", "gcc"),
    # frameworks: a data type, an architecture or a part that this build or card does not have
    ("ValueError(\"type fp8e9foo not supported in this architecture.\")\n", "fp8-unsupported", "8-bit"),
    ("AssertionError: One of GPU archs of ['gfx1299'] is invalid or not supported by Flash-Attention\n", "flash-attn-arch-refused", "Composable Kernel"),
    ("AssertionError: One of GPU archs of ['gfx1299'] is invalid or not supported\n", "aiter-arch-refused", "aiter"),
    ("NotImplementedError: No Foo8 MoE backend supports the deployment configuration.\n", "vllm-no-moe-backend", "experts"),
    ("RuntimeError: Calling foo.eig on a CUDA tensor requires compiling PyTorch with MAGMA.\n", "torch-without-magma", "MAGMA"),
    ("AttributeError: module 'torch' has no attribute 'hip'\n", "torch-module-hip-missing", "torch.cuda"),
    ("KeyError: 'AMD Radeon RX 9999 XTX'\n", "card-name-not-in-table", "table"),
    ("FileNotFoundError: [Errno 2] No such file or directory: ':/usr/local/foo/bin/nvcc'\n", "cuda-home-starts-with-colon", "colon"),
    ("OSError: libc10_hip.so: cannot open shared object file: No such file or directory\n", "extension-for-rocm-torch-beside-other", "CUDA or the CPU"),
    ("error: call to '__shfl_foo' is ambiguous\n", "hip-call-ambiguous", "functions of HIP"),
    ("foo.h:3:1: error: redefinition of '__half2'\n", "half-type-defined-twice", "twice"),
    ("vk::PhysicalDevice::createDevice: ErrorExtensionNotPresent\n", "vulkan-feature-missing", "device"),
    ("ImportError: TorchCodec is required for save_with_foo.\n", "torchcodec-missing", "torchcodec"),
    ("AssertionError: foo decode kernel is gfx1299-only\n", "kernel-for-one-card", "another card"),
    ("RuntimeError: `foo` must be a CUDA/HIP tensor.\n", "tensor-of-host-for-hip-kernel", "host"),
    ("RuntimeError: HIP does not support fooAsync\n", "cupy-function-not-of-hip", "CuPy"),
    ("NCCL WARN rocm_smi_lib: 0000:99:00.0 device index not found\n", "rccl-card-not-in-smi", "bus number"),
    ("Error: llama-server reported out-of-memory during startup: foo\n", "ollama-server-out-of-memory", "memory"),
    ("MIOpen Error: /foo/tensor.cpp:9: Unsupported layout\n", "miopen-form-not-taken", "layout"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "named"), CLASSES, ids=[f"{row[1]}-{row[2]}" for row in CLASSES])
def test_message_of_an_unseen_program_is_answered_with_its_class_and_values(text, expected, named):
    answer = diagnosed(text, KNOWN)
    assert answer.best is not None
    assert answer.best.signature.id == expected
    assert named in f"{answer.best.title} {answer.best.cause}"


def test_symptom_or_aftermath_lists_several_causes_each_with_a_test():
    for one in SIGNATURES:
        if one.kind in ("symptom", "aftermath"):
            assert len(one.causes) > 1, one.id
            assert all(cause.says and cause.test for cause in one.causes), one.id


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("ROCm 6.1\nMemory access fault by GPU node-1 on address 0x7f00. Reason: Page not present.\n", "release"),
        ("/opt/rocm/lib/librocblas.so\nSegmentation fault (core dumped)\n", "release"),
        ("clang++: error: cannot find HIP runtime; provide its path via '--rocm-path'\n", "packages"),
    ],
)
def test_weak_sign_orders_the_causes_and_states_none_as_certain(text, weak):
    first, decided = next(answers(diagnosed(text, KNOWN)))
    assert weak in first
    assert not decided


def test_index_without_the_package_is_another_cause_than_packages_that_exclude_each_other():
    lines = "Additionally, some packages in these conflicts have no matching distributions available for your environment:\n"
    text, decided = next(
        answers(diagnosed(lines + "ERROR: ResolutionImpossible: for help visit https://example.org\n", KNOWN))
    )
    assert "index" in text
    assert decided


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Error response from daemon: Unable to find group render: no matching entries in group file\n",
            "number (gid)",
        ),
        ("groupmod: GID '992' already exists\n", "taken by another group"),
        ("$ ./main b1.txt\nWave size must be 32. Exit\nmake: *** [Makefile:58: run] Error 255\n", "wavefronts of 64"),
        ("ValueError: Unsupported CUDA architecture: sm115\n", "CUDA capability"),
        ("pkg.OrtException: ROCm execution provider is not enabled in this build.\n", "built without the part"),
        (
            'avc: denied { read } for comm="boinc" name="kfd" scontext=system_u:system_r:boinc_t:s0\n',
            "domain (boinc_t)",
        ),
        (
            'audit: apparmor="DENIED" operation="open" class="file" profile="snap.a.b" name="/dev/kfd" pid=4\n',
            "profile snap.a.b",
        ),
    ],
)
def test_message_that_states_its_cause_is_answered_with_its_values(text, words):
    found = diagnosed(text, KNOWN)
    assert found.best is not None
    assert words in next(listed(found, found.best))[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#0 Tensile::PlaceholderLibrary() from librocblas.so.5\nSegmentation fault (core dumped)\n", "incomplete"),
        ("ImportError: cannot import name '_C' from 'sam2' (../sam2/__init__.py)\n", "compiled extension"),
        ("No OpenCL device found\n", ".icd"),
        ("foo.cpp:7:1: internal compiler error: Killed (program cc1plus)\n", "out of memory"),
        ("error: invalid value 'foo' for --backend: possible values are bar, baz\n", "does not know that value"),
        ("NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129\n", "GID"),
        ("NCCL WARN NET/IB : Got completion from peer 10.2.0.5<33092> with error 5, opcode 0\n", "died"),
        ("Unable to open /dev/kfd read-write: Invalid argument\n", "unplugged"),
        ("RuntimeError: Triton Error [HIP]: Code: 719, Messsage: unspecified launch failure\n", "release of Triton"),
        ("DKMS: amdtPwrProf\nError! Bad return status for module build on kernel: 4.11.0-foo\n", "Another AMD driver"),
        ("Free memory: 7.75GiB\nfailed to allocate 8.00G from device: hipError_t(1002)\n", "goes on with less"),
        ("No GPU to monitor.\n", "built without support for AMD"),
        ("nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1\n", "another path"),
        ("dxcore initialization failed\nnvidia-container-cli: initialization error: driver error\n", "Windows"),
        ("clang: undefined symbol: LLVMInitializeNVPTXTargetInfo, version LLVM_11\n", "same ones"),
    ],
)
def test_open_symptom_lists_first_the_cause_that_the_log_leans_to(text, words):
    stated, decided = next(answers(diagnosed(text, KNOWN)))
    assert words in stated
    assert not decided


def test_kernel_option_in_the_log_decides_why_the_compute_node_is_missing():
    text = "ls: cannot access '/dev/kfd': No such file or directory\n# CONFIG_HSA_AMD is not set\n"
    stated, decided = next(answers(diagnosed(text, KNOWN)))
    assert "CONFIG_HSA_AMD" in stated
    assert decided


def test_rpm_that_excludes_another_decides_among_the_reasons_for_a_missing_requirement():
    text = (
        "- package mesa requires ocl-icd, but none of the providers can be installed\n"
        "- installed package loader-3.0 conflicts with ocl-icd\n"
    )
    stated, decided = next(answers(diagnosed(text, KNOWN)))
    assert "has to be replaced" in stated
    assert decided


def test_network_plugin_without_a_device_is_no_program_without_a_card():
    assert diagnosed("node49:49:49 [0] NCCL INFO NET/IB : No device found.\n", KNOWN).best is None


@pytest.mark.parametrize(
    "line", ["\tlibfoo.so.4 => /usr/lib/libfoo.so.4 (0x00007f)\n", "libnccl-foo.so => not found\n"]
)
def test_library_that_is_found_or_optional_is_no_missing_one(line):
    best = diagnosed(line, KNOWN).best
    assert best is None or best.signature.id != "library-not-opened"


def test_crash_without_a_trace_lists_first_the_card_that_the_build_has_no_code_for():
    causes = listed_causes("Segmentation fault (core dumped)\n")
    assert "not supported" in causes[0]
    assert "mixed versions" in causes[2]


def test_driver_of_windows_leads_where_the_log_names_it():
    log = "failed to initialize ROCm: no ROCm-capable device is detected\ndriver: Adrenalin Edition 26.1.1\n"
    assert "Adrenalin on Windows" in next(answers(diagnosed(log, KNOWN)))[0]


def test_module_not_loaded_lists_an_image_without_lsmod_among_three():
    causes = listed_causes("ROCk module is NOT loaded, possibly no GPU devices\n")
    assert any("kmod" in text for text in causes[:3])


@pytest.mark.parametrize(
    ("log", "first"),
    [
        (
            "ValueError: Failed to find a kernel that can implement the Foo16 linear layer. Reasons:\n"
            "  FooKernel cannot implement due to: Activation reordering (g_idx) is not supported\n",
            "float16",
        ),
        (
            "torch._dynamo.exc.FooError\nAssertionError: Expect scale_a and scale_b to be either both scalars. "
            "Got scale_a: 2 and scale_b: 0.\n",
            "by row",
        ),
        (
            "`ckFoo` is not supported because:\n    dtype=torch.float32 (supported: {torch.float16})\n"
            "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:\n",
            "half precision",
        ),
        (
            "ValueError: Free memory on device cuda:0 (1.3/24.0 GiB) on startup is less than desired GPU memory "
            "utilization (0.95, 22.8 GiB).\nworker restart after memory profiling\n",
            "profiling",
        ),
    ],
)
def test_symptom_of_a_server_lists_first_the_cause_that_its_log_hints_at(log, first):
    assert first in next(answers(diagnosed(log, KNOWN)))[0]


@pytest.mark.parametrize(
    "line",
    [
        "rocblaslt warning: No paths matched /foo/*gfx1299*co. Make sure that HIPBLASLT_TENSILE_LIBPATH is set correctly.\n",
        "UserWarning: The operator 'aten::foo' is not currently supported on the DML backend and will fall back to run on the CPU.\n",
        "UserWarning: Flash attention was not compiled for current AMD GPU architecture. Attempting to run on architecture gfx1299\n",
        'level=WARN msg="dropping ROCm device — no rocblas support for gfx target" gfx_target=gfx1299\n',
        "host:1:1 [0] NCCL INFO Could not enable P2P between dev 0(=5000) and dev 1(=8000)\n",
    ],
)
def test_slower_way_of_a_framework_is_a_remark_and_no_failure(line):
    found = diagnosed(line, KNOWN)
    assert found.best is None
    assert found.ranked.remarks[0].signature.kind == "degraded"


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("ModuleNotFoundError: No module named 'bitsandbytes.foo'\nImportError: No bitsandbytes / x\n", "mixed"),
        ("ImportError: No bitsandbytes / x\n", "not installed"),
        ("ggml_vulkan: 0 = AMD Radeon (AMD open-source driver) | uma: 0\nggml_vulkan: Device memory allocation of size 7 failed\n", "limit|allows"),
        ("ggml_vulkan: Device memory allocation of size 7 failed\n", "layers"),
        ("llama_model_load: error loading model: mmap failed: No such device\n", "network"),
        ("Error: pull model manifest: file does not exist\n", "name or tag"),
        ('  File "ComfyUI/custom_nodes/Foo/nodes.py", line 7, in run\nKeyError: \'foo\'\n', "A custom node"),
    ],
)  # fmt: skip
def test_failure_of_a_model_program_lists_first_the_cause_that_its_log_names(log, first):
    assert re.search(first, next(answers(diagnosed(log, KNOWN)))[0])


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("foo installation failed: see the log\n", "k8s-request-refused"),
        ("Cache copy failed: Could not create or access target directory /models: denied\n", "docker-context-file-missing"),
        ("Error while downloading from https://hub.example: Max retries exceeded.\n", "ollama-pull-failed"),
        ("TypeError: Unknown type: foo8\n", "ollama-import-refused"),
        ("error: this script must be run from the root of the repository\n", "sudo-refused"),
        ("ImportError: Unable to convert output to tensors format, FooTorch is not installed.\n", "weights-names-unknown"),
        ("* KSampler 3:\n  - Required input is missing: model\nFailed to validate prompt for output 9:\n", "comfy-model-file-not-listed"),
    ],
)  # fmt: skip
def test_line_of_another_program_is_not_taken_for_this_failure(line, other):
    assert other not in [match.signature.id for match in diagnosed(line, KNOWN).ranked.failures]


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("Error: llama-server process has terminated: signal: killed\n", "main memory ran out"),
        ("Error: llama-server process has terminated: signal: segmentation fault\n", "crashed inside"),
        ("hip.h:31: HipVMM Failure: out of memory\n", "virtual memory"),
        ("ggml_vulkan: device lost on Vulkan0\nring comp_1.1.0 timeout, signaled seq=1, emitted seq=2\n", "2 s for a compute job"),
        ("koboldcpp_foo\nOSError: [WinError 1114] A dynamic link library (DLL) initialization routine failed\n", "AVX"),
        ("FLM NPU validation failed: Memlock limits are too low.\n", "locked memory"),
        ("Failed to validate prompt for output 9:\n* KSampler 3:\n  - Required input is missing: model\n", "not connected"),
        ("[WARN] AMD GPU detected (gfx1299) -- Unsloth has no ROCm PyTorch wheels for that arch, installing CPU PyTorch.\n", "no wheels for"),
    ],
)  # fmt: skip
def test_failure_read_from_the_code_that_prints_it_lists_first_the_cause_of_its_log(log, first):
    assert first in next(answers(diagnosed(log, KNOWN)))[0]
