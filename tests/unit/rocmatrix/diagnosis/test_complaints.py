# ruff: noqa: E501 (lines stand as they are pasted)
"""Complaints in words around a log that ends without an error, and warnings in the same words, which name no cause."""

import pytest

from tests.unit.rocmatrix.diagnosis.known import best, signatures_of

COMPLAINTS = (
    ("complaint-slow", "# inference on the GPU is way slower than on the CPU, with ROCm 3.7"),
    ("complaint-hang", "Requested to load AutoencoderKL\n# then nothing for minutes at VAE decode, the desktop stutters"),
    ("complaint-image-wrong", "100%|##########| 32/32 [00:06<00:00,  4.91it/s]\n# the picture has a grid pattern over it"),
    ("complaint-text-garbage", "llama_model_loader: loaded meta data\n# the answers are gibberish since the update"),
    ("complaint-card-unused", "# My GPU isn't showing up in the device list"),
    ("complaint-card-busy-at-idle", "# the server waits for input, and the card runs at 100 % all the time"),
    ("complaint-machine-down", "got prompt\n# the PC reboots when a larger image is generated"),
    ("complaint-numbers-wrong", "# It works on CPU but on GPU I get wrong results"),
    ("complaint-other-card-taken", "# ComfyUI is using my integrated graphics instead of the 7900 XTX"),
    ("complaint-after-update", "# After kernel update to 6.14 rocm no longer works"),
    ("complaint-memory-free-and-refused", "# I get OOM although 24GB VRAM free"),
    ("complaint-program-ends", "got prompt\n# and then the program closed"),
    ("complaint-program-ends", "# any long prompt causes a crash with no error"),
    ("complaint-card-unused", "# ps shows 100% GPU but CPU is used"),
    ("complaint-other-build-installed", "# Selecting ROCm for torch always results in a CUDA install"),
    ("complaint-memory-amount", "# ROCm is only seeing 15.5 GB instead of the 96 GB that are allocated"),
    ("complaint-memory-grows", "# VRAM fills up after each generation and is never freed"),
    ("complaint-other-build-installed", "# the installer always installs the CUDA torch although ROCm is selected"),
    ("complaint-fp8-unused", "# fp8 is not used on my R9700"),
    ("complaint-slow", "# prefill regressed by 40 % since the last release"),
    ("complaint-hang", "# the training never starts"),
    ("complaint-card-unused", "INFO: started\n# it says AMD is selected, and the audio is processed by the CPU"),
    ("complaint-other-card-taken", "# --cuda-device 1 is ineffective, device 0 is used in any case"),
    ("complaint-text-garbage", "# with two cards only # characters come out"),
    ("ollama-no-runner", 'msg="Dynamic LLM libraries" runners=[cpu cpu_avx]\nmsg="inference compute" id=0 library=cpu'),
    ("ggml-hip-target-missing", "ninja: error: unknown target 'ggml-hip'\nmake: *** [Makefile:12: all] Error 1"),
    ("zluda-not-installed", "Failed to install ZLUDA: HTTP Error 404: Not Found"),
    ("attention-mask-unsupported", "RuntimeError: [_efficient_attention_forward] Unsupported mask type on ROCM, for now"),
    ("hsa-out-of-registers", "Queue aborting with error : HSA_STATUS_ERROR_OUT_OF_REGISTERS: Kernel has requested more VGPRs than are available"),
    ("directml-check-failed", "[F D:\\a\\_work\\1\\s\\torch_directml\\csrc\\engine\\dml_util.cc:118] Invalid or unsupported data type."),
    ("hip-oom-although-free", "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 23.98 GiB of which 20.10 GiB is free."),
    ("shell-killed-alone", "$ ./llama-server -m m.gguf -ngl 99\nmain: server is listening\nKilled"),
    ("windows-program-ends-at-pause", "  0%|          | 0/20 [00:00<?, ?it/s]\nE:\\ComfyUI>pause\nPress any key to continue . . ."),
    ("kfd-group-not-held", "$ groups\nuser adm cdrom sudo\n$ ls -l /dev/kfd\ncrw-rw---- 1 root render 235, 0 Nov 29 10:00 /dev/kfd"),
    ("pip-lists-torch-of-default-index", "$ pip list | grep torch\ntorch 2.5.1\ntorchvision 0.20.1\n$ rocminfo | grep gfx\n  Name:  gfx1100"),
    ("llama-rocm-device-absent", "ggml_cuda_init: failed to initialize ROCm: no ROCm-capable device is detected\nwarning: no usable GPU found, --gpu-layers option will be ignored"),
)  # fmt: skip
WARNINGS = (
    "UserWarning: Using a slow tokenizer; this may be very slow for long texts.",
    "hint: if it hangs at init_process_group, set NCCL_DEBUG=INFO",
    "Negative prompt: blurry, black image, distorted picture",
    "DeprecationWarning: after the next update this option will no longer work as before",
    "$ groups\nuser adm cdrom sudo\n$ ls -l /dev/kfd\ncrw-rw----+ 1 root render 235, 0 Nov 29 10:00 /dev/kfd",  # an ACL gives access
    "10:00.0 VGA compatible controller: [AMD/ATI] Raphael\ntorch 2.6.0\ntorchaudio 2.6.0\nNVIDIA GeForce RTX 4090",
    # no comment of a user's: what programs print of themselves
    "Flash attention is not available, falling back to the math kernel, which is significantly slower.",
    "You're using a T5TokenizerFast tokenizer. Please note that with a fast tokenizer, using the `__call__` method is much faster; the slow one is much slower",
    "tokenizers: this runs in a single thread and is 10x slower",
    "note: building without ccache is much slower",
    "This is very slow for large arrays",
    "Compiling kernels for the first time, first run takes 3 min",
    "INFO: the first image takes 2 minutes while kernels are tuned",
    "The server never returns more than 100 rows",
    "process hangs up gracefully",
    "[I] without any output files nothing to do, but nothing else changed",
    "level=INFO msg=\"Dynamic LLM libraries\" runners=[cpu cpu_avx cpu_avx2 rocm_avx]",
    "The queue never starts before 8:00; processed by the CPU scheduler",
    "rocBLAS warning: hipBlasLT failed, falling back to tensile.",
    "Downloading the model takes 12 minutes on a slow line",
    "torch.compile: recompiling, first iteration is much slower",
    "Loading model, it just hangs around until a request arrives",
)  # fmt: skip


@pytest.mark.parametrize(("identity", "text"), COMPLAINTS)
def test_complaint_without_an_error_is_answered_with_its_usual_causes(identity: str, text: str) -> None:
    assert best(text + "\n") == identity


@pytest.mark.parametrize("text", WARNINGS)
def test_warning_in_the_words_of_a_complaint_names_no_cause(text: str) -> None:
    assert signatures_of(text + "\n") == []


def test_complaint_next_to_an_error_comes_after_it() -> None:
    assert best("# it is very slow and then it ends\nRuntimeError: HIP error: invalid device function\n") == (
        "hip-invalid-device-function"
    )
