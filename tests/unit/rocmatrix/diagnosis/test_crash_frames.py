# ruff: noqa: E501 (lines stand as they were printed)
"""Crashes are put down to the library of their innermost frames; numbers that are wrong to what they are checked with."""

import pytest

from benchmarks.diagnose_cases import answers, diagnosed
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, best, ranked


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("#1  rocr::AMD::GpuAgent::InitFoo() ()", "crash-in-hsa-runtime"),
        ("#1  foo () from ./lib/libhsa-runtime64.so.1", "crash-in-hsa-runtime"),
        (
            "received signal SIGSEGV, Segmentation fault.\n0x00007fffec8ad3be in rocr::AMD::Foo ()",
            "crash-in-hsa-runtime",
        ),
        ("#2 0x00007fffec8ad3be in miopen::solver::conv::Foo::IsApplicable ()", "crash-in-miopen"),
        ("#2 foo () from /opt/lib/libMIOpen.so.1", "crash-in-miopen"),
        ("#0  ncclFoo () from /home/user/build/librccl.so.1", "crash-in-rccl"),
        ("#1  rocblas_foo_ex () from /opt/rocm/lib/librocblas.so.5", "crash-in-blas"),
        ("#6  rocprofiler::registration::finalize() from librocprofiler-sdk.so.1", "rocprofiler-at-exit"),
        ("#7  foo::bar() () from ./lib/libfoo.so.1", "process-crashed"),
        ("#12 miopen::Foo ()", "process-crashed"),
    ],
)
def test_crash_is_put_down_to_the_library_of_its_innermost_frames(frame, expected):
    assert best(f"{frame}\nSegmentation fault (core dumped)\n") == expected


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("torch 2.13.0a0+rocm7.14.0a20260612\nSegmentation fault (core dumped)\n", "nightly"),
        ("#0  ncclFoo () from /x/site-packages/torch/lib/librccl.so.1\nNET/Plugin: loaded librccl-net.so\n", "A network plugin"),
        ("#1  miopen::kernels[abi:cxx11]() () from ./libMIOpen.so.1\n", "stack"),
        (">>> import torch\nterminate called after throwing an instance of 'std::bad_alloc'\n", "while it is loaded"),
        ("# the output is garbage\n[aiter] import [module_foo] under /x.so\n", "aiter"),
        ("# the output is garbage\n--tensor-parallel-size 4\n", "all-reduce"),
        ("torch.linalg.foo(a)\nRuntimeError: HIP error: invalid configuration argument\n", "linear algebra"),
        ("Accuracy: 0.000\nInvalid: 1.000\n", "aiter"),
        ("HIP_VISIBLE_DEVICES=3\nmultiprocessing/reductions.py line 1\nRuntimeError: HIP error: invalid argument\n", "same cards"),
        ("NCCL WARN no transport for peer on channel 2\nnum_speculative_tokens=3\n", "speculative decoding"),
        ("Decode transfer failed for request 1\nib0 GID_index 3\n", "network device"),
        ('  File "/x/speculative/foo.py", line 1, in f\nValueError: Unsupported metadata type\n', "attention back end"),
        ('  File "/x/vllm/_aiter_ops.py", line 9, in fused_allreduce_foo\n    assert result\nAssertionError\n', "custom all-reduce"),
        ("RuntimeError: No available kernel. Aborting execution.\nFlash attention was not compiled for current AMD GPU architecture.\n", "AOTriton"),
        ("expert_data.copy_(loaded_weight)\nRuntimeError: The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 1\n", "quantised checkpoint"),
        ("CompilationError: at 51:13:\nValueError: arange's range must be a power of 2\n", "powers of two"),
        ("[aiter] import [module_foo]\nMemory access fault by GPU node-5 on address 0x7f. Reason: Write access to a read-only page.\n", "A kernel of aiter"),
        ("foo.py: error: argument --target_gpus: expected at least one argument\n", "AOTriton"),
        ("a.hip:7:10: fatal error: aotriton/flash.h: No such file or directory\n", "USE_MEM_EFF_ATTENTION"),
        ("llm.wake_up()\n# only gibberish\n", "slept and woke"),
        ("# the trace has no kernel events\nrocprofv3 --kernel-trace\n", "rocprofv3"),
        ("Autotuning failed for HLO: %foo\nFailures (3): WRONG RESULTS\n", "Several processes"),
        ("    rocr::core::InterruptSignal::WaitRelaxed (libhsa-runtime64.so.1)\n", "HSA_ENABLE_INTERRUPT"),
        ("# then it hangs forever\nhipMemcpyWithStream (libamdhip64.so.7)\n", "HSA_ENABLE_SDMA"),
        ("# much slower than torch 2.8\n", "regression"),
        ("# prefill is much slower\nUsing TRITON_ATTN attention backend.\n", "another attention backend"),
        ("Exception Code: 0xC0000005\n#1 at::cuda::_grouped_mm() (torch_hip.dll+0x1)\n", "a grouped product"),
        ("access violation reading 0x1\namdhip64_7!hipProfilerRegisterFoo+0x21\n", "defect when it launches"),
        ("# a memory leak: CPU memory grows with each epoch\n", "leaks host memory"),
        ("# GPU memory grows until restart\nPYTORCH_HIP_ALLOC_CONF=expandable_segments:True\n", "Caches grow"),
        ("# the machine hangs with four cards\nGGML_CUDA_P2P=1\n", "Direct transfers"),
        ("# warm-up takes 25 min, it was 2 min before\n", "regression"),
        ("PYTORCH_TUNABLEOP_ENABLED=1\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 12.28 GiB.\n", "TunableOp"),
        ("nccl_net_ofi_rdma.c:312 NCCL WARN NET/OFI Completion with error\nremote process exited or there was a network error\n", "network plugin"),
    ],
)  # fmt: skip
def test_open_failure_lists_first_the_cause_that_its_log_names(log, first):
    assert first in next(answers(diagnosed(log, SIGNATURES)))[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("AssertionError: Tensor-likes are not close!", "values-differ-from-reference"),
        ("sgemm: max abs err 3450.66  max rel err 16583.75", "values-differ-from-reference"),
        ("The supported AMDGPU versions are gfx1298gfx1299, gfx900.", "tf-architecture-list-broken"),
        ("ERROR: Your GPU does not support Int8 Matmul!", "bnb-int8-product-absent"),
        ('Can\'t exec "g++": No such file or directory at /opt/rocm/bin/hipcc line 243.', "hipcc-without-gxx"),
        (
            "theMasterLibrary = list(masterLibraries.values())[0]\nIndexError: list index out of range",
            "tensile-without-logic",
        ),
        ("CUDADriverError: hipErrorInvalidValue: invalid argument", "cupy-launch-refused"),
        ("ERROR: LoadError: UndefVarError: `Foo` not defined", "julia-name-undefined"),
        ("ERROR: InitError: UndefVarError: `hipErrorInvalidResourceHandle` not defined", "hip-error-family"),
        ("NotImplementedError: Foo attention are not implemented for BarAttentionImpl", "vllm-feature-not-on-platform"),
        ("foo: error: ambiguous option: --foo could match --foo-bar, --foo-baz", "option-unrecognized"),
        (
            "stream_executor::gpu::RocmCommandBuffer::Foo\nSegmentation fault (core dumped)",
            "crash-in-xla-command-buffer",
        ),
        ("Forward Convolution Failed: 0.0123 > 1.5e-05", "values-differ-from-reference"),
        (
            "Invalid elapsed time detected in EvaluateInvokers\nRuntimeError: miopenStatusUnknownError",
            "miopen-elapsed-time-invalid",
        ),
        ("# a large accuracy regression since the update", "benchmark-accuracy-zero"),
        (
            "#0  rocr::core::BusyWaitSignal::WaitRelaxed () from /opt/rocm/lib/libhsa-runtime64.so.1",
            "hang-at-signal-of-card",
        ),
        (
            "#1  rocr::HSA::hsa_signal_wait_scacquire () from /opt/rocm/lib/libhsa-runtime64.so.1",
            "hang-at-signal-of-card",
        ),
        ("# detector leaks 6 GB of host RAM a day", "complaint-memory-grows"),
        ("# it was ended\nOut of memory: Killed process 7 (python3) total-vm:1kB", "host-oom-killer"),
        ("# a memory leak\nOut of memory: Killed process 7 (python3) total-vm:1kB", "complaint-memory-grows"),
        ("max abs err 0.0003 max rel err 0.0001", None),
    ],
)
def test_line_of_a_thread_is_answered_with_its_signature(line, expected):
    assert best(f"{line}\n") == expected


def test_library_of_the_thread_that_crashed_comes_before_what_other_threads_wait_in():
    waiting = (  # the thread of events, in each process with a card
        "#0  __GI___ioctl (fd=3) at ioctl.c:36\n"
        "#1  0x00007fff6f0a1234 in ?? () from /opt/rocm/lib/libhsa-runtime64.so.1\n"
        "#2  0x00007fff6f0a5678 in rocr::core::Signal::WaitAny () from /opt/rocm/lib/libhsa-runtime64.so.1\n"
        "#3  0x00007fff6f0a9abc in rocr::core::Runtime::AsyncEventsLoop(void*) () from /opt/rocm/lib/libhsa-runtime64.so.1\n"
    )
    crashed = "#0  0x00007fff8a1b2c3d in rocsparse_spmv () from /opt/rocm/lib/librocsparse.so.1\n"
    received = 'Thread 1 "python3" received signal SIGSEGV, Segmentation fault.\n'
    found = ranked(f"{received}{crashed[4:]}\n{waiting}\n{crashed}").failures[0]
    assert (found.signature.id, "librocsparse" in found.title) == ("crash-in-named-library", True)
