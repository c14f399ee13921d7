"""Guests of Proxmox VE: what an AMD card needs in their files, and right files without a finding.

The forms are those of public files (threads and repositories named at each); names, addresses and disks are made up.
"""

import pytest

from rocmatrix.doctor.environment import placement
from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.files.machines import proxmox
from tests.fixtures.cells import MATRIX

CONTAINER = "arch: amd64\nhostname: {name}\nostype: ubuntu\nrootfs: local-lvm:vm-101-disk-0,size=64G\n"
VM = "bios: ovmf\ncores: 8\ncpu: host\nmachine: q35\nmemory: 16384\nname: {name}\nscsihw: virtio-scsi-single\n"
NODES = "lxc.mount.entry: /dev/dri dev/dri none bind,optional,create=dir\n"
KFD = "lxc.mount.entry: /dev/kfd dev/kfd none bind,optional,create=file\n"
IDMAP = (
    "lxc.idmap: u 0 100000 65536\nlxc.idmap: g 0 100000 104\nlxc.idmap: g 104 104 1\nlxc.idmap: g 105 100105 65431\n"
)
RIGHT = {
    # by devN, as Proxmox's own pages have it; with the group that owns both nodes in the container
    "devices of an unprivileged container": CONTAINER.format(name="ollama")
    + "unprivileged: 1\ndev0: /dev/kfd,gid=993\ndev1: /dev/dri/renderD128,gid=993\ndev2: /dev/dri/card0,gid=44\n",
    # community-scripts/ProxmoxVE#15401
    "two cards": CONTAINER.format(name="llama")
    + "dev0: /dev/dri/renderD128,gid=992\ndev1: /dev/dri/renderD129,gid=992\ndev2: /dev/kfd,gid=992\nunprivileged: 1\n",
    "a privileged container": CONTAINER.format(name="rocm")
    + "lxc.cgroup2.devices.allow: c 226:* rwm\nlxc.cgroup2.devices.allow: c 511:* rwm\n" + NODES + KFD,
    "mapped groups": CONTAINER.format(name="comfyui") + "unprivileged: 1\nlxc.cgroup2.devices.allow: c 226:128 rwm\n"
    "lxc.cgroup2.devices.allow: c 235:0 rwm\nlxc.mount.entry: /dev/dri/renderD128 dev/dri/renderD128 none bind,"
    "optional,create=file\n" + KFD + IDMAP,
    "all devices": CONTAINER.format(name="rocm") + "lxc.cgroup2.devices.allow: a\n" + NODES + KFD,
    # decoding of video needs no compute
    "video alone": CONTAINER.format(name="jellyfin")
    + "unprivileged: 1\ndev0: /dev/dri/renderD128,gid=104\n#\n[before]\ndev0: /dev/kfd\n",
    "no card at all": CONTAINER.format(name="dns") + "unprivileged: 1\n",
    "by the address of the card": CONTAINER.format(name="rocm")
    + "lxc.cgroup2.devices.allow: c 226:* rwm\nlxc.cgroup2.devices.allow: c 235:* rwm\nlxc.mount.entry: /dev/dri/"
    "by-path/pci-0000:03:00.0-render dev/dri/renderD128 none bind,optional,create=file\n" + KFD,
    "whole card": VM.format(name="gaming") + "hostpci0: 0000:03:00,pcie=1,x-vga=1\nvga: none\n",
    "its functions apart": VM.format(name="rocm") + "hostpci0: 0000:03:00.0,pcie=1\nhostpci1: 0000:03:00.1,pcie=1\n",
    # hostpci1 is the card's sound, hostpci2 a network card
    "other devices with a card": VM.format(name="rx-7900-xtx")
    + "hostpci0: 0000:03:00.0,pcie=1\nhostpci1: 0000:03:00.1\nhostpci2: 0000:05:00.0\n",
    "a network card": VM.format(name="router").replace("q35", "pc").replace("ovmf", "seabios")
    + "hostpci0: 0000:05:00.0\n",
    "mapping of the cluster": VM.format(name="rocm") + "hostpci0: mapping=radeon,pcie=1\n",
    "ROM of the card": VM.format(name="win") + "hostpci0: 0000:03:00,pcie=1,romfile=RX6600XT.rom,x-vga=1\n",
}  # fmt: skip
WRONG = {
    "nothing allowed": ({"node-not-allowed"}, CONTAINER.format(name="rocm") + NODES + KFD),
    # a public page allows NVIDIA's number for /dev/kfd
    "number of another driver": (
        {"node-not-allowed"},
        CONTAINER.format(name="ollama") + "lxc.cgroup2.devices.allow: c 195:* rwm\n"
        "lxc.cgroup2.devices.allow: c 226:* rwm\n" + NODES + KFD,
    ),
    "number of another node": (
        {"node-not-allowed"},
        CONTAINER.format(name="media") + "lxc.cgroup2.devices.allow: c 226:0 rwm\n"
        "lxc.mount.entry: /dev/dri/renderD128 dev/dri/renderD128 none bind,optional,create=file\n",
    ),
    "keys of the older cgroups": (
        {"cgroup-of-version-1", "node-not-allowed"},
        CONTAINER.format(name="media") + "lxc.cgroup.devices.allow: c 226:* rwm\n" + NODES,
    ),
    "compute without kfd": (
        {"kfd-not-given"},
        CONTAINER.format(name="pytorch-rocm") + "unprivileged: 1\ndev0: /dev/dri/renderD128,gid=993\n",
    ),
    "kfd alone": ({"dri-not-given"}, CONTAINER.format(name="vllm") + "unprivileged: 1\ndev0: /dev/kfd,gid=993\n"),
    "nodes of none of its groups": (
        {"nodes-without-owner"},
        CONTAINER.format(name="rocm") + "unprivileged: 1\nlxc.cgroup2.devices.allow: c 226:* rwm\n"
        "lxc.cgroup2.devices.allow: c 511:0 rwm\n" + NODES + KFD,
    ),
    "folder for a file": (
        {"mount-of-another-kind"},
        CONTAINER.format(name="rocm") + "lxc.cgroup2.devices.allow: a\n" + NODES + KFD.replace("=file", "=dir"),
    ),
    "absolute target": (
        {"mount-target-absolute"},
        CONTAINER.format(name="rocm") + "lxc.cgroup2.devices.allow: a\n" + NODES + KFD.replace(" dev/kfd", " /dev/kfd"),
    ),
    "folder as a device": (
        {"device-is-a-folder"},
        CONTAINER.format(name="rocm") + "dev0: /dev/dri,gid=44\ndev1: /dev/kfd,gid=44\n",
    ),
    "read-only": (
        {"node-read-only"},
        CONTAINER.format(name="rocm") + "dev0: /dev/kfd,gid=44,deny-write=1\ndev1: /dev/dri/renderD128,gid=44\n",
    ),
    "maps that overlap": (
        {"idmap-overlaps"},
        CONTAINER.format(name="rocm") + "unprivileged: 1\ndev0: /dev/kfd,gid=44\ndev1: /dev/dri/renderD128,gid=44\n"
        + IDMAP.replace("0 100000 104", "0 100000 105"),
    ),
    "groups mapped alone": (
        {"idmap-without-users"},
        CONTAINER.format(name="rocm") + "unprivileged: 1\ndev0: /dev/kfd,gid=44\ndev1: /dev/dri/renderD128,gid=44\n"
        + IDMAP.replace("lxc.idmap: u 0 100000 65536\n", ""),
    ),
    "letters exchanged": (
        {"device-nearly-right", "kfd-not-given"},
        CONTAINER.format(name="rocm") + "dev0: /dev/kdf,gid=44\ndev1: /dev/dri/renderD128,gid=44\n",
    ),
    "PCIe without q35": (
        {"pcie-without-q35"},
        VM.format(name="win").replace("machine: q35\n", "") + "hostpci0: 0000:03:00,pcie=1,x-vga=1\n",
    ),
    "card behind a PCI bridge": ({"card-not-on-pcie"}, VM.format(name="rocm") + "hostpci0: 0000:03:00\n"),
    "one function": ({"function-not-given"}, VM.format(name="rx-7900-xtx") + "hostpci0: 0000:03:00.0,pcie=1\n"),
    "given twice": (
        {"device-given-twice"},
        VM.format(name="rocm") + "hostpci0: 0000:03:00,pcie=1\nhostpci1: 0000:03:00.1,pcie=1\n",
    ),
    "ROM that is hidden": (
        {"rom-hidden"},
        VM.format(name="win") + "hostpci0: 0000:03:00,pcie=1,rombar=0,romfile=vbios.rom,x-vga=1\n",
    ),
    "address": ({"hostpci-address"}, VM.format(name="rocm") + "hostpci0: 3:0.0,pcie=1\n"),
}  # fmt: skip


def rules_of(text, tmp_path, *, notes=False):
    path = tmp_path / "101.conf"
    path.write_text(text)
    found = placement.misplaced(recognise.subjects(path, shell={}), MATRIX)
    return {finding.rule for finding in found if notes or finding.severity != "note"}


@pytest.mark.parametrize("name", RIGHT)
def test_right_file_has_no_warning(name, tmp_path):
    assert rules_of(RIGHT[name], tmp_path) == set()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_file_is_named_with_its_rule(name, tmp_path):
    expected, text = WRONG[name]
    assert rules_of(text, tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (CONTAINER.format(name="x") + "dev0: /dev/kfd\ndev1: /dev/dri/renderD128,gid=993\n", "node-of-root"),
        (
            CONTAINER.format(name="x") + "dev0: /dev/kfd,gid=44\ndev1: /dev/dri/renderD128,gid=993\n",
            "node-groups-differ",
        ),
        (RIGHT["a privileged container"], "kfd-number-moves"),
        (VM.format(name="rocm").replace("ovmf", "seabios") + "hostpci0: 0000:03:00,pcie=1\n", "card-without-ovmf"),
        (VM.format(name="rocm") + "hostpci0: 0000:03:00,pcie=1,rombar=0\n", "rom-hidden"),
    ],
)
def test_caution_is_a_note(text, rule, tmp_path):
    assert rules_of(text, tmp_path) == set()
    assert rule in rules_of(text, tmp_path, notes=True)


def test_variables_of_a_container_are_read(tmp_path):
    path = tmp_path / "101.conf"
    path.write_text(RIGHT["no card at all"] + "lxc.environment: HSA_OVERRIDE_GFX_VERSION=10.3.0\n")
    [subject] = recognise.subjects(path, shell={})
    assert [(row.name, row.value, row.where) for row in subject.variables] == [
        ("HSA_OVERRIDE_GFX_VERSION", "10.3.0", f"{path}:6")
    ]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (RIGHT["whole card"], True),
        (RIGHT["no card at all"], True),
        ("[Service]\nEnvironment=A=1\n", False),
        ("HSA_XNACK=1\n", False),
        ("server { listen: 80 }\n", False),
    ],
)
def test_file_of_a_guest_is_known_by_its_keys(text, is_one):
    assert proxmox.is_guest(text) is is_one
