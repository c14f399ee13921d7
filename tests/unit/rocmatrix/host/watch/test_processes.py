"""Processes on a card, by fdinfo and KFD. SYNTHETIC: keys and units as the kernel's documentation has them."""

import pytest

from rocmatrix.host.sysfs import Files
from rocmatrix.host.watch import processes

CARD = "0000:03:00.0"
GIB = 1 << 30


class Proc(Files):
    """Processes below a root; `closed` holds those of other users."""

    closed: tuple[int, ...] = ()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def client(
        self, pid, number, *, client=1, name="python3", card=CARD, memory="drm-memory-vram:\t1048576 KiB", **more
    ):
        rows = {"pos": "0", "drm-driver": "amdgpu", "drm-client-id": client, "drm-pdev": card} | more
        self.write(f"proc/{pid}/comm", f"{name}\n")
        self.write(f"proc/{pid}/cmdline", name)
        self.write(f"proc/{pid}/fdinfo/{number}", "".join(f"{key}:\t{text}\n" for key, text in rows.items()) + memory)

    def guarded_names(self, folder):
        if any(folder.startswith(f"proc/{pid}/") for pid in self.closed):
            raise PermissionError(13, "Permission denied", folder)
        return super().guarded_names(folder)


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def only(found):
    (use,) = found.uses.values()
    return use


@pytest.mark.parametrize(
    ("memory", "amount"),
    [
        ("drm-memory-vram:\t1048576 KiB", GIB),
        ("drm-total-vram:\t4 GiB\ndrm-memory-vram:\t1048576 KiB\ndrm-resident-vram:\t2048 MiB", 2 * GIB),
        ("drm-total-vram:\t1073741824", GIB),
        ("drm-memory-vram:\t12 parsecs\ndrm-total-vram:\t1 GiB", GIB),
    ],
)
def test_memory_is_that_which_is_resident(proc, memory, amount):
    proc.client(7, 3, memory=memory)
    assert only(processes.read(proc, {})).memory == amount


def test_client_of_two_descriptors_and_a_fork_counts_once(proc):
    for pid, number in ((7, 3), (7, 4), (8, 3)):
        proc.client(pid, number, client=5)
    proc.client(7, 9, client=6)
    found = processes.read(proc, {})
    assert {pid: use.memory for (pid, _), use in found.uses.items()} == {7: 2 * GIB}


def test_client_of_another_driver_or_without_an_address_is_left_out(proc):
    proc.client(7, 3, **{"drm-driver": "i915"})
    proc.client(8, 3, card="../../etc")
    proc.client(9, 3, client="x")
    proc.write("proc/10/fdinfo/3", "pos: 0\nflags: 02\n")
    assert processes.read(proc, {}) == processes.Processes(uses={}, withheld=0)


def test_process_that_holds_the_node_alone_is_left_out(proc):
    proc.client(7, 3, memory="drm-memory-vram:\t0 KiB\ndrm-engine-gfx:\t0 ns")
    assert not processes.read(proc, {}).uses


def test_processes_of_other_users_are_counted_without_threads_of_the_kernel(proc):
    proc.client(7, 3)
    proc.write("proc/8/cmdline", "")
    proc.closed = (7, 8)
    assert processes.read(proc, {}) == processes.Processes(uses={}, withheld=1)


def test_memory_of_kfd_counts_where_it_is_larger(proc):
    proc.client(7, 3)
    proc.write("sys/class/kfd/kfd/proc/7/vram_40001", f"{3 * GIB}\n")
    proc.write("sys/class/kfd/kfd/proc/9/vram_40001", f"{GIB}\n")
    proc.write("sys/class/kfd/kfd/proc/9/vram_555", f"{GIB}\n")  # of a card that is not looked at
    proc.write("sys/class/kfd/kfd/proc/9/pasid", "32770\n")
    found = processes.read(proc, {40001: CARD})
    assert {pid: (use.memory, use.compute, use.name) for (pid, _), use in found.uses.items()} == {
        7: (3 * GIB, True, "python3"),
        9: (GIB, True, "?"),
    }


def test_engine_times_are_read_without_capacities(proc):
    rows = "drm-engine-gfx:\t12 ns\ndrm-engine-capacity-gfx:\t2\ndrm-engine-dec:\tmany ns\ndrm-engine-enc:\t-4 ns\n"
    proc.client(7, 3, memory=rows)
    assert only(processes.read(proc, {})).engines == {"gfx": 12}


def test_name_with_control_signs_is_printable(proc):
    proc.client(7, 3, name="\x1b[2Jbad\u202ename")
    assert only(processes.read(proc, {})).name == "?[2Jbad?name"


def test_links_choose_the_descriptors_where_they_are_there(proc, tmp_path):
    proc.client(7, 3, client=1)
    proc.client(7, 4, client=2)
    (tmp_path / "proc/7/fd").mkdir()
    (tmp_path / "proc/7/fd/3").symlink_to("/dev/dri/renderD128")
    (tmp_path / "proc/7/fd/4").symlink_to("/dev/null")
    assert only(processes.read(proc, {})).memory == GIB
