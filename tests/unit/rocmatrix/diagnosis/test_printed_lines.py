# ruff: noqa: E501 (messages stand as they were printed)
"""Lines as the kernel driver, the run times, RCCL, UCX, MPI and the profilers print them: values filled in by us."""

import pytest

from benchmarks.diagnose_cases import answers, diagnosed
from rocmatrix.diagnosis.signature import FAILURES
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, best

BUS = "amdgpu 0000:03:00.0: "
WARN = "node1:4242:4300 [0] init.cc:42 NCCL WARN "
UCX = "[1732910000.123456] [node1:4242 :0] ucp.c:42 UCX  ERROR "
DRIVER = (
    ("amdgpu-gfxhub-page-fault", "GPU fault detected: 147 0x0a284802"),
    ("amdgpu-gfxhub-page-fault", "VM fault (0x04, vmid 4, pasid 32770) at page 1055488, read from 'TC4'"),
    ("amdgpu-vbios-stuck", "amdgpu asic init failed"),
    ("amdgpu-no-bios-rom", "no vBIOS found"),
    ("amdgpu-recovery-failed", "asic reset on init failed"),
    ("sriov-host-silent", "VF exclusive mode timeout"),
    ("amdgpu-mes-failed", "MES ring buffer is full."),
    ("psp-not-started", "PSP tmr init failed!"),
    ("amdgpu-kiq-request-failed", "TLB flush failed for PASID 32770."),
    ("amdgpu-smu-not-answering", "SMU: No response msg_reg: 32 resp_reg: 0"),
    ("amdgpu-smu-not-answering", "SMU: I'm very busy for your command: index:15 param:0x00000000"),
    ("gpu-lost-from-bus", "SMU: bus error for message: SetWorkloadMask(36) response:0xFFFFFFFF"),
    ("queue-not-preempted", "Queue preemption failed for queue with doorbell_id: 80004008"),
    ("partition-change-failed", "Invalid compute partition mode requested, requested: CPX, available memory partitions: 1"),
    ("amdgpu-early-init-failed", "amdgpu_uvd: Can't validate firmware amdgpu/polaris10_uvd.bin"),
    ("amdgpu-gpu-reset", "GPU reset begin!. Source:  3"),
    ("aer-pcie-uncorrected", "device lost from bus!"),
    ("amdgpu-init-failed", "amdgpu_device_ip_init failed"),
    ("amdgpu-boot-test-failed", "socket: 0, aid: 1, fw_status: 0x10, xgmi link training failed"),
    ("amdgpu-suspend-evict-failed", "evicting device resources failed"),
)  # fmt: skip
PROGRAMS = (
    ("kfd-device-not-added", "kfd kfd: Error starting queue manager for device 1002:744c"),
    ("kfd-iommu-missing", "kfd kfd: Error initializing iommuv2"),
    ("kfd-not-supported-on-asic", "kfd kfd: OLAND  not supported in kfd"),
    ("kfd-group-not-held", 'user is not member of "render" group, the default DRM access group.'),
    ("rccl-no-interface", WARN + "Net : No interface found in the same subnet as remote address 10.0.0.3<40000>"),
    ("rccl-bootstrap-mixed", WARN + "Bootstrap Root : rank 3 of 8 ranks has already checked in"),
    ("rccl-connect-failed", WARN + "socketStartConnect: exceeded retries (20000)"),
    ("rccl-invalid-argument", WARN + "AllReduce : sendbuff allocated on device 1 mismatchs with NCCL device 0"),
    ("rccl-api-misused", WARN + "ncclGroupEnd: not in a group call."),
    ("rccl-proxy-operation-failed", WARN + "[Service thread] Accept failed Cannot allocate memory"),
    ("rccl-unix-socket-failed", WARN + "UDS: Binding to socket /tmp/nccl-socket-1-abc failed : Permission denied (13)"),
    ("hip-free-of-unknown-memory", ":0:device.cpp :321 : 12345 us: Memobj map does not have ptr: 0x7f10"),
    ("hip-fat-binary-unreadable", ":0:hip_global.cpp:209 : Cannot create GlobalVar Obj for symbol: _ZL30store"),
    ("hip-log-error-family", ":1:hip_vm.cpp:161 : 12345 us: Exporting Handle failed with flags: 0"),
    ("kfd-queue-create-failed", ":1:rocdevice.cpp:3103: 12345 us: Device::acquireQueue: hsa_queue_create failed!"),
    ("ucx-rocm-ipc-failed", UCX + "fail to attach ipc mem 0x7f2c 4097"),
    ("ucx-peer-lost", UCX + "tcp_ep 0x1: connect(fd=12, dest_addr=10.0.0.3:41234) failed: Connection refused"),
    ("ucx-shared-memory-failed", UCX + "open(file_name=/proc/123/fd/29 flags=0x0) failed: No such file or directory"),
    ("mpirun-rankfile-invalid", "PRTE was unable to open the hostfile:\n\n   hosts"),
    ("mpirun-allocation-missing", "Some of the requested hosts are not included in the current\nallocation."),
    ("openmpi-peer-disconnected", "[node1][[1,1],0] mca_btl_tcp_frag_recv: readv failed: Connection reset by peer (104)"),
    ("mesa-amdgpu-query-failed", "amdgpu_device_initialize: DRM version is 1.2 but this driver is only compatible with 3.x.x."),
    ("wsl-address-space-exhausted", "fail to reserve Local Heap Space!"),
    ("rdc-not-connected", "the root CA must be copied to /etc/rdc/client/certs/rdc_cacert.pem"),
    ("rocprofv3-call-refused", "Fatal error: No application provided"),
)  # fmt: skip


@pytest.mark.parametrize(("expected", "line"), DRIVER)
@pytest.mark.parametrize("prefix", [BUS + "amdgpu: ", BUS], ids=["twice", "once"])
def test_line_of_the_driver_is_known_with_the_prefix_of_older_kernels_and_of_linux_7(expected, line, prefix):
    assert best(prefix + line) == expected


@pytest.mark.parametrize(("expected", "line"), PROGRAMS)
def test_line_of_a_library_or_tool_is_known(expected, line):
    assert best(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "misc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22",
        "workqueue: svm_range_restore_work [amdgpu] hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
        BUS + "amdgpu: RAS Init Status: 0x4",
        "[drm] scheduler comp_1.0.0 is not ready, skipping",
        "[1.1] [node1:4242 :0] mpool.c:40 UCX  WARN  object 0x7f {flags:0x20040} was not returned to mpool ucp_requests",
        WARN + "MSCCL++: Cannot enable MSCCL++ on gfx90a architecture",
    ],
)
def test_remark_of_a_run_that_goes_on_is_no_failure(line):
    one = next(one for one in SIGNATURES if one.id == best(line))
    assert one.kind not in FAILURES


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("amdgpu: sq_intr: error, se 0, data 0x1, sa 0, priv 1, wave_id 0, simd_id 0, wgp_id 0, err_type 1\n", "illegal instruction"),
        ("amdgpu: sq_intr: error, se 0, data 0x1, sh 0, priv 1, wave_id 0, simd_id 0, cu_id 0, err_type 3\n", "ECC"),
        (":1:rocdevice.cpp:678: HSA device gfx1103 (PCI ID 15bf) has 2 ISAs but can only support a single ISA\n", "is older than libhsa-runtime64"),
        (WARN + "UDS: Sending data over socket @nccl-socket failed : Connection refused (111)\n", "network namespaces"),
        ("File rdcd.lock is locked. Is rdcd already running?\n", "Another rdcd runs"),
        ("pml_ucx.c:327 UCP worker does not support MPI_THREAD_MULTIPLE. PML UCX could not be selected\n", "MPI_THREAD_MULTIPLE"),
        ("[drm:amdgpu_dm_init [amdgpu]] *ERROR* No firmware provided for DMUB.\n", "dmcub.bin"),
    ],
)  # fmt: skip
def test_cause_that_the_line_names_stands_first(log, first):
    assert first in next(answers(diagnosed(log, tuple(SIGNATURES))))[0]
