"""Codes of libraries and of the kernel: what each means, by number and by name, and in the words of a signature."""

import errno
import typing

import pytest

from rocmatrix.diagnosis import codes
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.paths import ROOT
from tests.unit.rocmatrix.diagnosis.known import ranked


def first(log):
    return ranked(log).failures[0]


def numbers(release):
    return [int(part) for part in release.split(".")]


@pytest.mark.parametrize(
    ("table", "code", "words"),
    [
        ("hip", "98", "architecture"),
        ("hip", "hipErrorInvalidDeviceFunction", "architecture"),
        ("hsa", "0x1008", "/dev/kfd"),
        ("hsa", "4104", "/dev/kfd"),
        ("rocblas", "rocblas_status_internal_error", "kernel files"),
        ("nccl", "2", "/dev/shm"),
        ("errno", "28", "full"),
        ("errno", "ENOSPC", "full"),
        ("library", "libroctx64", "roctracer"),
        ("library", "libhipblas.so.2", "of ROCm 6; hipblas (AMD"),
        ("library", "libamdhip64.so.6.2.41133", "ROCm 6; hip-runtime-amd"),
        ("library", "libglib-2.0.so.0", "libglib2.0-0"),
        ("library", "libcublasLt.so.12", "build for NVIDIA"),
        ("api", "hipMallocAsync", "came with ROCm 5.2"),
        ("api", "HIPBLAS_R_16F", "hipDataType"),
        ("module", "cv2", "opencv-python"),
        ("cmake", "ROCMHeaderWrapper", "ROCm 5.2"),
        ("cmake", "rocm_install_targets", "rocm-cmake"),
        ("cmake", "ROCmCMakeBuildTools", "rocm-cmake"),
        ("call", "hipMemAdvise", "optional"),
        ("component", "libhsa-runtime64", "HSA runtime"),
        ("component", "radeonsi_dri", "Mesa"),
        ("library", "libmigraphx.so.2012000", "ROCm 6.4"),
        ("library", "numa", "libnuma1"),
        ("library", "libboost_thread.so.1.76.0", "exactly the release"),
        ("abi", "GLIBCXX_3.4.30", "GCC 12: Ubuntu 22.04, Debian 12, RHEL 10"),
        ("abi", "GLIBC_2.34", "RHEL 8, Leap 15.5 and earlier do not"),
        ("header", "hip/hip_fp8.h", "came with ROCm 6.2"),
        ("header", "rocprim/device/device_scan.hpp", "rocprim-dev (AMD)"),
        ("cmake", "hip/hip_fp8.h", "came with ROCm 6.2"),
        ("command", "/usr/bin/rocminfo", "/opt/rocm/bin"),
        ("command", "nvcc", "no AMD card needs"),
        ("package", "perl(File::BaseDir)", "EPEL"),
        ("package", "libdrm-amdgpu1", "not of the one of ROCm"),
        ("suite", "wilma", "name noble"),
        ("symbol", "hipMallocAsync", "came with ROCm 5.2"),
        ("symbol", "hipLaunchKernel", "libamdhip64"),
        ("symbol", "_ZN3c103hip20getCurrentHIPStreamEa", "libc10_hip"),
        ("symbol", "_ZNSt3__15ctypeIcE2idE", "libc++"),
        ("model", "gpt-oss", "b6096"),
        ("model", "qwen3", "transformers 4.51 has it, and 4.50 does not"),
        ("module", "triton.ops", "triton 3.2 removed it"),
        ("module", "torch._C._functorch", "ROCm index"),
        ("module", "torch._C._distributed_c10d", "USE_DISTRIBUTED=0"),
        ("module", "google.protobuf.internal.builder", "protobuf 3.20"),
        ("python", "transformers.models.llama.modeling_llama.LlamaFlashAttention2", "transformers 4.48 removed it"),
        ("python", "transformers.utils.AutoModelForVision2Seq", "transformers 5.0 removed it"),
        ("python", "triton.compiler.compiler.triton_key", "an older one lacks it; triton 3.5 removed it"),
        ("python", "torch.hip", "torch.version.hip"),
        ("python", "numpy.float_", "np.float64"),
    ],
)
def test_code_is_found_by_number_and_by_name(table, code, words):
    assert words in codes.meaning(table, code)


@pytest.mark.parametrize("table", typing.get_args(codes.Table))
def test_table_has_rows_and_a_key_once(table):
    known = codes._rows_of(table)
    assert len(known) > 10
    assert all(key == key.lower() and text for key, text in known.items())


@pytest.mark.parametrize("table", sorted(codes.OWN_FILES))
def test_key_of_a_table_stands_in_one_letter_case(table):
    entries = matrix_file.part(ROOT, f"{codes.TABLES}/{table}.yaml", codes.Codes).entries
    assert len({key.lower() for key in entries}) == len(entries)


def test_name_of_a_package_came_before_it_went():
    packages = matrix_file.part(ROOT, f"{codes.TABLES}/python.yaml", codes.ByRelease).packages
    for releases in packages.values():
        came = {name: release for release, names in releases.came.items() for name in names}
        went = {name: release for release, names in releases.went.items() for name in names}
        assert not [name for name in came.keys() & went if numbers(came[name]) >= numbers(went[name])]


def test_unknown_code_has_no_meaning():
    assert codes.meaning("hip", "31415") is None
    assert codes.meaning("python", "transformers.NoSuchName") is None
    assert codes.meaning("header", "no/such.h") is None
    assert codes.meaning("errno", "") is None


def test_numbers_of_errno_are_those_of_this_kernel():
    for number, name in errno.errorcode.items():
        stated = codes.meaning("errno", str(number))
        alias = {"EWOULDBLOCK": "EAGAIN", "ENOTSUP": "EOPNOTSUPP", "EDEADLOCK": "EDEADLK"}.get(name, name)
        assert stated is None or stated.startswith(f"{alias}: ")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "F gpu_launch_config.h:174] Check failed: err == hipSuccess (98 vs. 0)",
            "no code for this card's architecture",
        ),
        ("/opt/rocm/lib/libamdocl64.so(+0xa1b2c) [0x7f11a2b3c4d5]", "AMD's OpenCL runtime"),
        ("include could not find requested file:\n\n    ROCMHeaderWrapper", "came with ROCm 5.2"),
        ('Unknown CMake command "rocm_set_soversion".', "belongs to rocm-cmake"),
        ("./x: error while loading shared libraries: librocblas.so.3: cannot open shared object file", "5.6 and 5.7"),
        ("ImportError: libmpi.so.12: cannot open shared object file: No such file or directory", "MPICH"),
        ("a.cpp:1:5: error: unknown type name 'hipblasDatatype_t'", "ROCm 7 (hipBLAS 3.0) removed it"),
        ("a.cpp:1:5: error: no matching function for call to 'hipblasGemmEx'", "hipblasComputeType_t"),
        ("./x: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./x)", "RHEL 9"),
        ("a.cpp:1:10: fatal error: libdrm/drm.h: No such file or directory", "libdrm-dev (Debian)"),
        ("/bin/sh: 1: ninja: not found", "ninja-build"),
        ("bash: amd-smi: command not found", "amd-smi-lib (AMD)"),
        ("make: hipify-perl: No such file or directory", "hipify-clang (AMD, Arch)"),
        ("nothing provides perl-File-BaseDir needed by hip-base-4.3.21300.el8.x86_64", "CodeReady Builder"),
        ("E: Unable to locate package nvtop", "multiverse"),
        (
            "The following packages have unmet dependencies:\n rocm-dev : Depends: rocm-cmake but it is not going to be"
            " installed\n             Depends: libstdc++-7-dev but it is not installable",
            "Ubuntu 18.04",
        ),
        (
            "trying to overwrite '/usr/share/doc/x/LICENSE', which is also in package amdgpu-dkms-firmware 1:5.11",
            "AMDGPU-PRO",
        ),
        ("/usr/bin/ld: cannot find -lnuma", "libnuma1 (Debian)"),
        (
            "ImportError: cannot import name 'Qwen3VLForConditionalGeneration' from 'transformers' (/x/__init__.py)",
            "transformers 4.57",
        ),
        ("ImportError: cannot import name 'AttrsDescriptor' from 'triton.compiler.compiler' (/x.py)", "triton 3.3"),
        ("AttributeError: module 'torch.cuda' has no attribute 'get_allocator_backend'", "torch 2.0"),
        ("AttributeError: module 'numpy' has no attribute 'float_'", "NumPy 2.0 removed it"),
        ("AttributeError: 'DynamicCache' object has no attribute 'seen_tokens'", "transformers 4.54 removed it"),
        (
            "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
            "eval_strategy takes its place",
        ),
        ("llama_model_load: error loading model architecture: unknown model architecture: 'gpt-oss'", "b6096"),
        ("E: The repository 'https://x.example/6.3 plucky Release' does not have a Release file.", "Ubuntu 25.04"),
        ("ImportError: /x/_C.so: undefined symbol: hipDrvGraphAddMemcpyNode", "came with ROCm 6.0"),
        ("ld.lld: error: undefined symbol: rocsolver_zhegvdx_inplace", "librocsolver"),
        ("RuntimeError: NCCL Error 6: remote process exited", "another rank ended"),
        ("OSError: [Errno 116] Stale file handle: '/home/u/a.pt'", "network file system lost the file"),
        ("Error: could not open the store (os error 116)", "network file system lost the file"),
    ],
)
def test_answer_states_the_meaning_of_a_code(line, words):
    assert words in first(line + "\n").cause


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        ("RuntimeError: expected mat1 and mat2 to have the same dtype, but got: float != Half", "dtypes-do-not-fit"),
        ("RuntimeError: Input type (float) and bias type (c10::Half) should be the same", "dtypes-do-not-fit"),
        ("RuntimeError: output tensor must have the same type as input tensor", "dtypes-do-not-fit"),
        ("ds4: ROCm model arena alloc failed for a span (1792.00 MiB): out of memory", "memory-out-any-wording"),
        ("RuntimeError: Address already in use (os error 98)", "address-in-use"),
        ("File: /var/lib/dkms/amdgpu/2.7-27/source/dkms.conf does not exist.", "dkms-conf-missing"),
    ],
)  # fmt: skip
def test_reason_is_known_in_another_wording(line, signature):
    assert first(line + "\n").signature.id == signature


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("ImportError: libroctx64.so.4: cannot open shared object file: No such file or directory", "roctracer (AMD"),
        ("ModuleNotFoundError: No module named 'skimage.io'", "scikit-image"),
        (
            "CMake Error at a.cmake:65 (find_package):\n4.6   Could not find a package configuration file provided by"
            '\n4.6   "ROCmCMakeBuildTools" (requested version 0.7.3) with any of the following',
            "rocm-cmake",
        ),
    ],
)
def test_listed_cause_names_what_holds_the_missing_part(log, words):
    match = first(log + "\n")
    assert any(words in match.filled(cause.says) for cause in match.signature.causes)


def test_refused_advice_on_memory_is_explained_by_the_setting_that_asks_for_it():
    text = (
        "ROCm error: invalid argument\n  in function ggml_cuda_device_malloc\n  hipMemAdvise(*ptr, size, 1, device)\n"
    )
    match = first(text)
    assert "which APUs and Windows refuse" in match.cause
    assert "GGML_CUDA_ENABLE_UNIFIED_MEMORY" in match.signature.remedy


def test_unknown_library_keeps_the_words_of_the_signature():
    match = first("ImportError: libexamplething.so.1: cannot open shared object file: No such file or directory\n")
    assert "`apt-file search`" in match.filled(match.signature.causes[0].says)
