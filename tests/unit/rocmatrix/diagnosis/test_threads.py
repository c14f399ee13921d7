# ruff: noqa: E501 (messages stand as they were printed)
"""Messages of threads on which the signatures were measured and then improved: each is diagnosed as the thread was."""

import pytest

from tests.unit.rocmatrix.diagnosis.known import best

MEASURED = (
    (
        "Comfy-Org/ComfyUI#3574",
        "hip-fat-binary-assert",
        "python: /build/hip-runtime-amd/src/clr-rocm-6.0.2/hipamd/src/hip_code_object.cpp:762: hip::FatBinaryInfo** hip::StatCO::addFatBinary(const void*, bool): Assertion `err == hipSuccess' failed.",
    ),
    (
        "utensils/comfyui-nix#34",
        "process-crashed",
        "comfyui.service: Main process exited, code=dumped, status=11/SEGV",
    ),
    (
        "ROCm/bitsandbytes#35",
        "bnb-rocm-binary-missing",
        "OSError: /opt/conda/envs/py_3.10/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cpu.so: cannot open shared object file: No such file or directory.",
    ),
    (
        "verl-project/verl#2995",
        "nccl-watchdog-timeout",
        "(WorkerDict pid=833, ip=172.26.153.33) [rank62]:[E809 14:59:33.656957424 ProcessGroupNCCL.cpp:629] [Rank 62] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE",
    ),
    (
        "Arthur151/ROMP#80",
        "rccl-unhandled-system-error",
        "RuntimeError: NCCL Error 2: unhandled system error",
    ),
    (
        "ROCm/vllm#893",
        "no-hip-gpus-available",
        "RuntimeError: No CUDA GPUs are available",
    ),
    (
        "ryujaehun/pytorch-gpu-benchmark#19",
        "miopen-code-object-build-failed",
        "MIOpen(HIP): Error [BuildOcl] comgr status = INVALID_ARGUMENT (2)",
    ),
    (
        "ROCm/TheRock#1278",
        "triton-pointer-not-accessible",
        "ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)",
    ),
    (
        "patientx/ComfyUI-Zluda#170",
        "triton-torch-mismatch",
        "torch._inductor.exc.InductorError: AttributeError: type object 'CompiledKernel' has no attribute 'launch_enter_hook'",
    ),
    (
        "ROCm/TheRock#6869",
        "hip-device-kernel-image-invalid",
        "CUDA error: device kernel image is invalid",
    ),
    (
        "justxi/rocm#184",
        "tensile-symbol-missing",
        "rocBLAS error: Tensile solution found, but kernel not found in any loaded module",
    ),
    (
        "hiyouga/LlamaFactory#8428",
        "hip-invalid-argument",
        "RuntimeError: CUDA driver error: invalid argument",
    ),
    (
        "AUTOMATIC1111/stable-diffusion-webui#16518",
        "pip-http-error",
        "ERROR: HTTP error 403 while getting https://download.pytorch.org/whl/nightly/rocm5.7/torch-2.2.0.dev20231010%2Brocm5.7-cp310-cp310-linux_x86_64.whl (from https://download.pytorch.org/whl/nightly/rocm5.7/torch/)",
    ),
    (
        "AUTOMATIC1111/stable-diffusion-webui#16636",
        "python-without-pip",
        "D:\\FC Diff\\stable-diffusion-webui\\venv\\Scripts\\python.exe: No module named pip",
    ),
    (
        "ROCm/k8s-device-plugin#23",
        "k8s-gpu-insufficient",
        "0/9 nodes are available: 3 node(s) had taint {node-role.kubernetes.io/master: }, that the pod didn't tolerate, 6 Insufficient amd.com/gpu.",
    ),
    (
        "ROCm/legacy-rocm-build#1357",
        "amdgpu-firmware-missing-fatal",
        '[    9.605986] amdgpu 0000:23:00.0: Direct firmware load for amdgpu/arcturus_gpu_info.bin failed with error -2\n[    9.605988] amdgpu 0000:23:00.0: Failed to load gpu_info firmware "amdgpu/arcturus_gpu_info.bin"\n[    9.605988] amdgpu 0000:23:00.0: Fatal error during GPU init\n[    9.605990] amdgpu 0000:23:00.0: amdgpu: finishing device.\n[    9.606063] amdgpu: probe of 0000:23:00.0 failed with error -2',
    ),
    (
        "ROCm/legacy-rocm-build#2747",
        "psp-not-started",
        "[Mon Dec 18 08:34:36 2023] [drm:psp_hw_start [amdgpu]] *ERROR* PSP create ring failed!",
    ),
    (
        "ROCm/flash-attention#111",
        "flash-attn-ck-build-unsupported-arch",
        "error: use of undeclared identifier 'CK_TILE_BUFFER_RESOURCE_3RD_DWORD'",
    ),
    (
        "cms-sw/cmssw#51819",
        "miopen-userdb-permission",
        "MIOpen Error: filesystem error: cannot create directories: Permission denied [/tmp/miopen-cache/3.5.2.]",
    ),
    (
        "ROCm/tensorflow-upstream#1419",
        "miopen-database-unopened",
        "MiOpen: Internal error while accessing SQLite database: disk I/O error",
    ),
    (
        "advanced-lvl-up/Rx470#4",
        "rocblas-tensile-no-solution",
        'rocBLAS error: No Tensile solution found for { a_type: "f16_r", b_type: "f16_r", c_type: "f16_r", d_type: "f16_r", compute_type: "f32_r", transA: \'N\', transB: \'N\', M: 1, N: 8192, K: 512 }',
    ),
    (
        "firewaterfire/HKDnet#1",
        "hip-out-of-memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 10.01 GiB (GPU 0; 14.75 GiB total capacity; 10.12 GiB already allocated; 4.39 GiB free; 10.22 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
    ),
    (
        "axolotl-ai-cloud/axolotl#1571",
        "flash-attn-card-unsupported",
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
    ),
    (
        "ollama/ollama#8770",
        "llama-runner-ended",
        "Error: llama runner process has terminated: exit status 2",
    ),
    (
        "invoke-ai/InvokeAI#7535",
        "hip-invalid-device-function",
        "Attaching to invokeai-rocm-1\ninvokeai-rocm-1  | Could not load bitsandbytes native library: 'NoneType' object has no attribute 'split'\ninvokeai-rocm-1  | Traceback (most recent call last):\ninvokeai-rocm-1  |     lib = get_native_library()\nRuntimeError: HIP error: invalid device function",
    ),
    (
        "ROCm/legacy-rocm-build#860",
        "dpkg-file-conflict",
        "trying to overwrite '/usr/share/dkms/modules_to_force_install/amdgpu', which is also in package amdgpu-dkms 19.20-812932",
    ),
    (
        "ROCm/legacy-rocm-build#1186",
        "apt-unmet-dependencies",
        "rocm-dkms : Depends: rocm-dev but it is not going to be installed",
    ),
    (
        "ggml-org/llama.cpp#3320",
        "hip-invalid-device-function",
        "ROCm error: ggml-cuda.cu:6246: invalid device function",
    ),
    (
        "ggml-org/llama.cpp#22013",
        "hip-invalid-device-function",
        "ROCm error: invalid device function",
    ),
    (
        "mosaicml/composer#1165",
        "process-crashed",
        "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -6",
    ),
    (
        "mila-iqia/milabench#397",
        "hip-unspecified-launch-failure",
        '{"event": "line", "data": "[rank1]: torch.AcceleratorError: HIP error: unspecified launch failure\\n", "pipe": "stderr"}',
    ),
    (
        "facefusion/facefusion-docker#42",
        "docker-device-driver-rocm",
        'Error response from daemon: could not select device driver "rocm" with capabilities: [[gpu video]]',
    ),
    (
        "ROCm/TheRock#4150",
        "libamdhip64-missing",
        "ImportError: librocprofiler-sdk.so.1: cannot open shared object file: No such file or directory",
    ),
    (
        "pytorch/torchtitan#2425",
        "hipblas-not-supported",
        "hipblaslt solution not found",
    ),
    (
        "unslothai/unsloth#1160",
        "triton-unsupported-target",
        "unsloth/kernels/rms_layernorm.py\":22:0): error: unsupported target: 'gfx906'",
    ),
    (
        "unslothai/unsloth#160",
        "triton-hip-error",
        "RuntimeError: Triton Error [HIP]:  Code: 1, Messsage: invalid argument",
    ),
    (
        "jax-ml/jax#24458",
        "hip-stream-capturing",
        "Hip error: 'operation would make the legacy stream depend on a capturing blocking stream'(906) at hipBLASLt/library/src/amd_detail/hipblaslt.cpp:135\n\nrocBLAS error: Could not initialize Tensile host:\n_Map_base::at\n\nAborted (core dumped)",
    ),
    (
        "ROCm/jax#489",
        "hip-invalid-device-function",
        "INTERNAL: Failed call to hipGetFuncBySymbol: hipError_t(98)",
    ),
    (
        "AUTOMATIC1111/stable-diffusion-webui#6420",
        "miopen-code-object-build-failed",
        "terminate called after throwing an instance of 'miopen::Exception'\n  what():  /MIOpen/src/hipoc/hipoc_program.cpp:300: Code object build failed. Source: naive_conv.cpp\nAborted (core dumped)",
    ),
    (
        "easydiffusion/easydiffusion#1426",
        "bus-error",
        "scripts/on_sd_start.sh: line 82: 31452 Bus error               (core dumped) uvicorn main:server_api",
    ),
    (
        "ROCm/device-metrics-exporter#277",
        "crash-in-named-library",
        "rocpctl[3114653]: segfault at 53454c43594b ip 00007f9424eddcce sp 00007ffdd0205160 error 4 in librocprofiler-sdk.so.1.0.0[7f94249d8000+637000]",
    ),
    (
        "Bforartists/Bforartists#6501",
        "crash-in-named-library",
        "Error   : EXCEPTION_ACCESS_VIOLATION\nAddress : 0x00007FFB1A2C3F10\nModule  : hiprt0200564.dll",
    ),
    (
        "ROCm/legacy-rocm-build#3664",
        "crash-in-named-library",
        "#0  0x00007f1f4a8d5c1a n/a (libamdocl64.so + 0xd5c1a)",
    ),
    (
        "ROCm/amdgpu#151",
        "pci-rejects-atomics-old-firmware",
        "kfd kfd: amdgpu: skipped device 1002:744c, PCI rejects atomics 494<509",
    ),
    (
        "darktable-org/darktable#16769",
        "comgr-header-cache-broken",
        "fatal error: malformed or corrupted AST file: 'could not find file '/usr/lib64/llvm17/bin/../../../lib/clang/17/include/opencl-c-base.h' referenced by AST file '/tmp/comgr-f76c16/include/opencl1.2-c.pch''",
    ),
    (
        "jellyfin/jellyfin#3094",
        "vaapi-not-started",
        "[AVHWDeviceContext @ 0x5560146fb940] Failed to initialise VAAPI connection: -1 (unknown libva error).",
    ),
    (
        "amd/esmi_ib_library#8",
        "hsmp-not-served",
        "ESMI Not initialized, drivers not found.",
    ),
    (
        "amd/esmi_ib_library#17",
        "hsmp-message-unknown",
        "Err[20]: HSMP message/command not supported",
    ),
    (
        "todxx/teamredminer#194",
        "miner-cannot-start-card",
        "[2021-05-02 02:10:40] Failed to initialize device idx 0 (-13)",
    ),
    (
        "obsproject/obs-amd-encoder#253",
        "amf-runtime-missing",
        "[AMF] Encountered Exception during AMF initialization: Unable to load 'amfrt64.dll', error code 126.",
    ),
    (
        "ROCm/rocprofiler-compute#520",
        "roofline-not-in-release",
        "ERROR [roofline] Cannot find a valid binary for your operating system",
    ),
    (
        "patientx/ComfyUI-Zluda#463",
        "zluda-files-do-not-fit",
        "function 'zluda_get_nightly_flag' not found, but nccl.dll is missing.",
    ),
    (
        "lshqqytiger/ZLUDA#118",
        "zluda-cublaslt-refused",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmulAlgoGetHeuristic( ltHandle, computeDesc.descriptor())`",
    ),
    (
        "ROCm/mori#481",
        "ucx-cannot-register-device-memory",
        "[application][error] RegisterRdmaMemoryRegion failed! addr:0x7e2a40000000, size:943718400, accessFlag:15, errno:22 (Invalid argument)\nFatal Python error: Aborted",
    ),
    (
        "noamsto/nix-amd-ai#79",
        "amdxdna-call-refused",
        "terminate called after throwing an instance of 'xrt_core::system_error'\n  what():  DRM_IOCTL_AMDXDNA_CREATE_HWCTX IOCTL failed (err=-2): No such file or directory",
    ),
    (
        "ROCm/clr#61",
        "clr-stack-bounds-assertion",
        "clinfo: clr/rocclr/os/os_posix.cpp:321: static void amd::Os::currentStackInfo(unsigned char**, size_t*): Assertion `Os::currentStackPtr() >= *base - *size && Os::currentStackPtr() < *base' failed.\nAborted (core dumped)",
    ),
    (
        "cupy/cupy#7661",
        "cupy-kernel-name-not-found",
        '  File "cupy_backends/cuda/api/driver.pyx", line 60, in cupy_backends.cuda.api.driver.check_status\nCUDADriverError: hipErrorNotFound: hipErrorNotFound',
    ),
    (
        "ROCm/hcc#1078",
        "rocm-device-library-missing",
        "hcc/build/compiler/bin/llvm-link: /opt/rocm/lib/hip.amdgcn.bc: error: Could not open input file: No such file or directory\nGenerating AMD GCN kernel failed in llvm-link with ROCm-Device-Libs for target: gfx906",
    ),
    (
        "JuliaGPU/AMDGPU.jl#680",
        "rocm-home-unknown",
        'Warning: HSA runtime is unavailable, compilation and runtime functionality will be disabled.\nERROR: InitError: KeyError: key "JULIA_AMDGPU_CORE_MUST_LOAD" not found',
    ),
    (
        "ROCm/rocDecode#264",
        "rocdecode-codec-not-supported",
        "[ERR]  {rocDecCreateVideoParser}  The current version of rocDecode officially supports only the H.265 (HEVC) codec.",
    ),
    (
        "ROCm/rocm-systems#11468",
        "rdc-field-not-offered",
        "rdcd[2114]: Fail to fetch 0:XGMI_ERROR with rsmi error code 5",
    ),
    (
        "ROCm/HIPIFY#1253",
        "hipify-cuda-not-found",
        "error: cannot find CUDA installation; provide its path via '--cuda-path', or pass '-nocudainc' to build without CUDA includes",
    ),
    (
        "ROCm/rocDecode#221",
        "vaapi-not-started",
        "libva error: /opt/amdgpu/lib/x86_64-linux-gnu/dri/radeonsi_drv_video.so init failed",
    ),
    (
        "chapel-lang/chapel#21964",
        "rocm-device-library-missing",
        "error: Unable to find or open ROCM device library file /opt/rocm/amdgcn/bitcode/oclc_isa_version_90.bc",
    ),
)


@pytest.mark.parametrize(("report", "expected", "text"), MEASURED, ids=[report for report, _, _ in MEASURED])
def test_message_of_a_thread_is_diagnosed_rightly(report, expected, text):
    assert best(text + "\n") == expected
