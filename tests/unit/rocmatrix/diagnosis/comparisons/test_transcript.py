"""Commands of a pasted screen, and the lines that each printed."""

import pytest

from rocmatrix.diagnosis.comparisons.transcript import LONGEST, command_of, line_at, plain, printed


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("$ uname -r", "uname -r"),
        ("# dkms status", "dkms status"),
        ("$uname -a", "uname -a"),
        ("user@host:~$ sudo dkms status", "dkms status"),
        ("[rocm@rocm ~]$ dmesg | grep kfd", "dmesg | grep kfd"),
        ("(venv) sduser@HAL:~$ rocminfo", "rocminfo"),
        ("root@e5ada9ab73f0:/workspace# df -h", "df -h"),
        ("~ $ sudo rocminfo", "rocminfo"),
        (">>> torch.version.hip", "torch.version.hip"),
        ("$ HSA_X=1 FOO=2 python main.py", "python main.py"),
        ("➜  uname -a", "uname -a"),
        ("PS C:\\Users\\a> pip list", "pip list"),
        ("uname -r", None),
        ("Filesystem      Size  Used Avail Use% Mounted on", None),
        ("shm              64M   20M   45M  31% /dev/shm", None),
        ("  Name:                    gfx1100", None),
        ("", None),
    ],
)
def test_command_of_a_line(line, command):
    assert command_of(line) == command


def test_output_ends_at_the_next_command():
    block = b"$ a\none\ntwo\n$ b\nthree\n"
    assert [row for _, row in printed(block, 4)] == [b"one", b"two"]
    assert list(printed(block, len(block))) == []


def test_prefix_and_colours_go_and_long_lines_are_cut():
    assert plain(b"  app-1  | \x1b[31mred\x1b[0m") == "red"
    assert len(line_at(b"x" * 9000, 0)) == LONGEST
