# ruff: noqa: E501 (lines stand as they are printed)
"""Lines of installers, engines and hypervisors whose words two causes share, and harmless ones: put together from the sources that print them."""

import pytest

from tests.unit.rocmatrix.diagnosis.known import ranked

FAILED = (
    (
        "IOMMU refuses the card; its group is free",
        "vfio-iommu-refused",
        "kvm: -device vfio-pci,host=0000:03:00.0: vfio 0000:03:00.0: failed to setup container for group 15: Failed to set iommu for container: Operation not permitted\n",
    ),
    (
        "guest's memory cannot be pinned",
        "vfio-map-no-memory",
        "kvm: -device vfio-pci,host=0000:03:00.0: vfio 0000:03:00.0: failed to setup container for group 15: memory listener initialization failed: Region pc.ram: vfio_container_dma_map(0x55, 0x0, 0x80000000, 0x7f) = -12 (Cannot allocate memory)\n",
    ),
    (
        "group held by a host driver",
        "vfio-group-not-viable",
        "kvm: -device vfio-pci,host=0000:03:00.0: vfio 0000:03:00.0: group 15 is not viable\n",
    ),
    (
        "keyring quota; no disk is full",
        "container-key-quota",
        "Error: crun: create keyring `3f0c`: Disk quota exceeded: OCI runtime error\n",
    ),
    (
        "quota of a disk",
        "no-space-left-on-device",
        "cp: error writing 'model.safetensors': Disk quota exceeded\n",
    ),
    (
        "port that needs rights; no program has it",
        "port-needs-privilege",
        "Error: rootlessport listen tcp 0.0.0.0:80: bind: permission denied\n",
    ),
    (
        "port in use",
        "address-in-use",
        "listen tcp 127.0.0.1:11434: bind: address already in use\n",
    ),
    (
        "module of another kernel",
        "module-of-other-kernel",
        "modprobe: FATAL: could not get modversions of /lib/modules/6.8.0-40-generic/updates/dkms/amdgpu.ko: Exec format error\n",
    ),
    (
        "image of another machine",
        "image-for-other-machine",
        "exec /opt/venv/bin/python: exec format error\n",
    ),
    (
        "docker.service without its reason",
        "docker-service-failed",
        "Job for docker.service failed because the control process exited with error code.\n",
    ),
    (
        "docker.service with its reason",
        "docker-daemon-config-invalid",
        "unable to configure the Docker daemon with file /etc/docker/daemon.json: invalid character '}' looking for beginning of object key string\nJob for docker.service failed because the control process exited with error code.\n",
    ),
    (
        "unsigned module under Secure Boot",
        "dkms-modules-unsigned",
        "Binary update-secureboot-policy not found, modules won't be signed\nmodprobe: ERROR: could not insert 'amdgpu': Key was rejected by service\n",
    ),
)
HARMLESS = {
    "kernel without headers is skipped": "Building for 6.8.0-41-generic\nModule build for kernel 6.8.0-40-generic was skipped since the kernel headers for this kernel do not seem to be installed.\n",
    "WSL's queries at a start": "misc dxg: dxgk: dxgkio_is_feature_enabled: Ioctl failed: -22\nmisc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22\n",
    "start of a guest": "vfio-pci 0000:03:00.0: vfio_ecap_init: hiding ecap 0x19@0x270\nvfio-pci 0000:03:00.0: Invalid PCI ROM header signature: expecting 0xaa55, got 0xffff\n",
    "machine without Secure Boot": "EFI variables are not supported on this system\n",
    "key in the old keyring": "W: https://repo.example/rocm/dists/noble/InRelease: Key is stored in legacy trusted.gpg keyring (/etc/apt/trusted.gpg), see the DEPRECATION section in apt-key(8) for details.\n",
}


@pytest.mark.parametrize(("case", "expected", "log"), FAILED, ids=[case for case, _, _ in FAILED])
def test_shared_words_get_the_cause_of_their_line(case, expected, log):
    assert ranked(log).failures[0].signature.id == expected, case


@pytest.mark.parametrize("log", HARMLESS.values(), ids=HARMLESS)
def test_harmless_lines_name_no_failure(log):
    assert ranked(log).failures == ()
