"""Codes of libraries and of the kernel: what each means, by number and by name, and in the words of a signature."""

import errno

import pytest

from rocmatrix.diagnosis import codes
from tests.unit.rocmatrix.diagnosis.known import ranked


def first(log):
    return ranked(log).failures[0]


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
    ],
)
def test_code_is_found_by_number_and_by_name(table, code, words):
    assert words in codes.meaning(table, code)


def test_unknown_code_has_no_meaning():
    assert codes.meaning("hip", "31415") is None
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
        (
            "ROCm error: invalid argument\n  in function ggml_cuda_device_malloc\n"
            "  hipMemAdvise(*ptr, size, 1, device)",
            "take it as optional",
        ),
    ],
)
def test_listed_cause_names_what_holds_the_missing_part(log, words):
    match = first(log + "\n")
    assert any(words in match.filled(cause.says) for cause in match.signature.causes)


def test_unknown_library_keeps_the_words_of_the_signature():
    match = first("ImportError: libexamplething.so.1: cannot open shared object file: No such file or directory\n")
    assert "`apt-file search`" in match.filled(match.signature.causes[0].says)
