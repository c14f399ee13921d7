# ruff: noqa: E501 (texts stand as they were printed)
"""What journals, clusters, schedulers and shells print of a machine or a person leaves a shared text; facts stay."""

import pytest

from rocmatrix.runtime.redaction import redacted
from rocmatrix.runtime.sharing.places import known_names


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("_HOSTNAME=kestrel\n_CMDLINE=x", "_HOSTNAME=<id>\n_CMDLINE=x"),
        ("    _HOSTNAME=kestrel", "    _HOSTNAME=<id>"),
        (
            "[  123.456789] kestrel kernel: amdgpu 0000:03:00.0: x",
            "[  123.456789] <host> kernel: amdgpu 0000:03:00.0: x",
        ),
        (
            "<13>1 2026-11-26T10:11:12.123Z kestrel kernel - - - x",
            "<13>1 2026-11-26T10:11:12.123Z <host> kernel - - - x",
        ),
        ("sudo[33]:     anna : TTY=pts/0", "sudo[33]:     <user> : TTY=pts/0"),
        ("           UID: 1001 (anna)", "           UID: 1001 (<name>)"),
        ("Node:             lx-7/10.1.2.3", "Node:             <host>/<address>"),
        ("  Warning Failed 2m kubelet, lx-7 Error: x", "  Warning Failed 2m kubelet, <host> Error: x"),
        ("Namespace:        acme", "Namespace:        <name>"),
        ('"reportingInstance": "lx-7"', '"reportingInstance": "<name>"'),
        ("UserId=anna(1001) GroupId=acme(1001)", "UserId=<name>(1001) GroupId=<name>(1001)"),
        ("BatchHost=lx-7", "BatchHost=<name>"),
        ("[lx-7:12345] *** Process received signal ***", "[<host>:12345] *** Process received signal ***"),
        ("[1,0]<stderr>:[kestrel:12345] Signal: Aborted (6)", "[1,0]<stderr>:[<host>:12345] Signal: Aborted (6)"),
        ("[prterun-lx-7-1234@1,0] <stderr> x", "[prterun-<host>-1234@1,0] <stderr> x"),
        ("  Host:      lx-7", "  Host:      <host>"),
        ("Machine name: 'kestrel'", "Machine name: '<host>'"),
        ("server socket listening on lx-7.acme.com:29500", "server socket listening on <host>:29500"),
        ("--master_addr lx-7 --master_port=29500", "--master_addr <host> --master_port=29500"),
        ("rank 1 with PID 22 on node lx7 exited", "rank 1 with PID 22 on node <host> exited"),
        ("worker-1: lx-7 slots=8", "<host> slots=8"),
        ('fatal: [lx-7]: FAILED! => {"msg": "x"}', 'fatal: [<host>]: FAILED! => {"msg": "x"}'),
        ("lx-7 : ok=3 changed=1", "<host> : ok=3 changed=1"),
        ("  on lx-7 Zr7QabcDE, system ID: s_abc123", "  on <host> <id>, system ID: <id>"),
        ("Running on runner-zr via kestrel...", "Running on runner-zr via <host>..."),
        ("Running on kestrel in /var/jenkins/x", "Running on <host> in /var/jenkins/x"),
        ("Started by user Anna Petrov", "Started by user <name>"),
        ('{"node_name":"lx-7","instance":"lx-7:9100"}', '{"node_name":"<name>","instance":"<name>"}'),
        (
            '{"key":"host.name","value":{"stringValue":"kestrel"}}',
            '{"key":"host.name","value":{"stringValue":"<name>"}}',
        ),
        ("RunAs User: ACME\\anna", "RunAs User: <user>"),
        ("line 1 &lt;anna@kestrel&gt;", "line 1 &lt;<user>@<host>&gt;"),
        ('"title": "anna@kestrel"', '"title": "<user>@<host>"'),
        ("kestrel% python x.py", "<host>% python x.py"),
        ("kestrel:~ # lspci", "<host>:~ # lspci"),
        ("anna at kestrel in ~/src", "<user> at <host> in ~/src"),
        ('[0] 0:bash* "kestrel" 10:11 26-Nov-26', '[0] 0:bash* "<host>" 10:11 26-Nov-26'),
        ("user anna is not in group render", "user <user> is not in group render"),
        ("anna is not a member of group video", "<user> is not a member of group video"),
        ("sudo usermod -aG render anna", "sudo usermod -aG render <user>"),
        ("$ groups anna", "$ groups <user>"),
        ("anna : anna adm render video", "<user> : adm render video"),
        ("drwxr-xr-x 5 anna acme 4096 Nov", "drwxr-xr-x 5 <user> <name> 4096 Nov"),
        ("anna     1234 99.0  1.2 123456 7890 ?", "<user>     1234 99.0  1.2 123456 7890 ?"),
        ("SUDO_USER=anna", "SUDO_USER=<user>"),
        ("/home1/anna/x.py", "/home1/<user>/x.py"),
        ("/mnt/nas/users/petrov/x", "/mnt/nas/users/<user>/x"),
        ("/gpfs/acme/home/anna/x", "/gpfs/acme/home/<user>/x"),
        ("/scratch/project_462000131/anna/tmp", "/scratch/project_462000131/<user>/tmp"),
        ("https://anna:Zr7Q@pypi.acme.com/simple", "https://<user>:<secret>@<host>/simple"),
    ],
)
def test_name_leaves_its_place(text, shown):
    assert redacted(text, ()) == shown


@pytest.mark.parametrize(
    "text",
    [
        "crw-rw---- 1 root render 226, 128 Nov 26 10:11 /dev/dri/renderD128",
        "crw-rw---- 1 root daemon 235, 0 Sep 11 09:06 /dev/kfd",
        "crw-rw---- 1 nobody nogroup 238, 0 Nov 20 10:11 /dev/kfd",
        "the pod runs as an ordinary user who is not in the group (106)",
        "Users must be a member of the render group; user is member of video group",
        "unable to find groups keep-groups",
        "[axolotl.load_model:354] [PID:808742] [RANK:2] patching",
        "[socket.cpp:752] [rank0:123] x",
        "UserId=root(0) GroupId=video(44) Account=(null)",
        "#SBATCH --gpus-per-node=mi250:8",
        '{"machine": "x86_64", "instance": 0, "node": null}',
        "connect [127.0.1.1]:3210: Connection refused",
        "Could not initialize Tensile host: No devices found",
        "nvidia-cublas-cu12        12.4.5.8",
        "2026-11-26T10:11:12.1234567Z HIP error: invalid device function",
        "2026-11-26T10:11:12.1234567Z Memory fault: x",
        "2026-11-26T10:11:12.1234567Z Downloading torch: 4 GB",
        "Nov 26 10:11:12 rocBLAS error: Cannot read TensileLibrary.dat",
        "/srv/vllm/engine.py and /scratch/models/x",
        "50% done",
    ],
)
def test_fact_at_such_a_place_stays(text):
    assert redacted(text, ()) == text


def test_name_given_away_once_leaves_everywhere():
    text = 'File "/home/anna/x.py"\nanna 12 GB\nNov 26 10:11:12 lx-7 kernel: x\nlx-7: [rank0] HIP error\n'
    assert known_names(text) == ("anna", "lx-7")
    assert redacted(text, ()) == (
        'File "/home/<user>/x.py"\n<name> 12 GB\nNov 26 10:11:12 <host> kernel: x\n<name>: [rank0] HIP error\n'
    )


@pytest.mark.parametrize(
    "text", ["/home/runner/work/x", "/home/vllm/x", "root@kestrel:~#", "Nov 26 10:11:12 kestrel kernel: x", "/home/rocm-user/x"]
)  # fmt: skip
def test_word_that_may_stand_anywhere_is_no_known_name(text):
    assert known_names(text) == ()


def test_hostile_lines_end():
    for hostile in (
        "[" * 100_000,
        "/scratch/" * 20_000,
        "a@b:" * 30_000,
        "anna is " * 20_000,
        '"node":"' * 20_000,
        "/home/a/" * 20_000,
    ):
        assert isinstance(redacted(hostile, ()), str)
