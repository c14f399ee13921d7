# ruff: noqa: E501 (texts stand as programs print them)
"""A cleaned text names no person, host, address, serial number or private path, and keeps what a failure is read from."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmatrix.evidence.bundle import clean
from rocmatrix.evidence.bundle.identity import Identity
from tests.fixtures.log_facts import FACTS

WHO = Identity(
    names=("deep7.acme-lab.org", "karla", "deep7"),
    secrets=("correct horse battery",),
    folders=(("/srv/karla/rocmatrix", "<checkout>"), ("/srv/karla", "<home>")),
)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("login with hf_abcdefghijklmnop1234", "hf_abcdefghijklmnop1234"),
        ("\x1b[1mhf_abcdefghijklmnop1234\x1b[0m", "hf_abcdefghijklmnop1234"),
        ("key AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("Authorization: Bearer abc.def.ghi-jkl", "abc.def.ghi-jkl"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSM", "SflKxwRJSM"),
        ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
        ('{"token": "s3cr3t-value"}', "s3cr3t-value"),
        ("password: 12345678", "12345678"),
        ("--registry-password hunter2hunter2", "hunter2hunter2"),
        ("variable holds correct horse battery here", "horse battery"),
        ("variable holds Correct HORSE Battery here", "horse battery"),
        ("variable holds cor\x00rect horse \x1b[1mbattery here", "horse battery"),
        ("in x/SRV/Karla/data", "karla"),
        ("driver 10.1.2.3 of v192.168.0.7x, version of 10.0.0.1", "10."),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXkt\n-----END OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXkt"),
        ('File "/home/karla/My Project/train.py", line 3', "My Project"),
        ("opened /mnt/acme-data/patients/x.csv now", "patients"),
        ("opened /mnt/acme\\ data/patients.csv now", "patients"),
        ("mounts=/data/acme:/data:ro", "acme"),
        ("C:\\Users\\Karla\\secret.txt", "secret.txt"),
        ("\\\\fileserver\\acme\\bars.csv", "fileserver"),
        ("file:///mnt/acme/bars.csv", "acme"),
        ("pulled from registry.acme.corp:5000/rocm/x", "acme"),
        ("https://pypi.acme-lab.org/simple/torch", "acme-lab"),
        ("https://user:pw@mirror.acme-lab.org/simple", "acme-lab"),
        ("wandb: Currently logged in as: jdoe7 (acme-corp). Use `wandb login --relogin`", "jdoe7"),
        ("wandb: Currently logged in as: jdoe7 (acme-corp) to https://api.wandb.ai", "acme"),
        ("git clone https://oauth2:glpat-xyz123456789012345@gitlab.acme.io/x.git", "acme"),
        ("docker login hub.example.com -u jdoe7 -p pw", "jdoe7"),
        ("SLURM_JOB_ACCOUNT=project_465000123 SLURM_SUBMIT_HOST=uan01", "uan01"),
        ("SLURM_JOB_ACCOUNT=project_465000123 SLURM_SUBMIT_HOST=uan01", "465000123"),
        ("//nas01/share on /mnt/nas type cifs (rw)", "nas01"),
        ("Linux mybox7 6.8.0-45-generic #45-Ubuntu SMP x86_64 GNU/Linux", "mybox7"),
        ('node "aks-gpunp-12345678-vmss000003" is not ready', "aks"),
        ("pod/train-abc on node gke-prod-gpu-pool-1a2b3c4d-x7z9", "gke"),
        ("host DEEP7 is up", "DEEP7"),
        ("log of deep7_old", "deep7"),
        ("signed by <karla> on <deep7>", "karla"),
        ("version 10.2.3.4", "10.2"),
        ("version: 192.168.1.2", "192.168"),
        ("%2Fhome%2Fkarla%2Fx", "karla"),
        ("lost ip-10-0-3-17.ec2.internal", "10-0-3-17"),
        ("bob@workstation9:~$ ls", "workstation9"),
        ("2026-11-22T18:46:24.123+00:00 workstation9 kernel: amdgpu", "workstation9"),
        ("--env SECRET_KEY='alpha beta gamma'", "gamma"),
        ('PASSWORD="two words here"', "words"),
        ("docker login -u bob -p hunter2pass reg", "hunter2pass"),
        ("curl -u bob:hunter2pass x", "hunter2pass"),
        ("cloned git@github.com:acme/private.git", "acme"),
        ("~bob/data.csv", "bob"),
        ("SLURM_JOB_NODELIST=node[17-20]", "node[17"),
        ("failed to connect to [node17]:29500", "node17"),
        ("node17 kernel: amdgpu", "node17"),
        ("from node17.cluster.acme.com port 22", "acme"),
        ("machine-id: 4f3c2b1a9d8e4f3c2b1a9d8e4f3c2b1a", "4f3c2b1a"),
        ("rdzv_endpoint=node17:29500", "node17"),
        ("connect to (node17, 29500) failed", "node17"),
        ("uid=1000(bob) gid=1000(bob)", "bob"),
        ("It is 10.3.68.117.", "10.3.68.117"),
        ("inet6 2001:db8::17 up", "2001:db8"),
        ("inet6 fe80::a86b:69ff:fe67:e3fe%eth0", "e3fe"),
        ("ether 3c:7c:3f:00:12:ab", "12:ab"),
        ("3C-7C-3F-00-12-AB", "12-AB"),
        ("3c7c.3f00.12ab", "12ab"),
        ("enx3c7c3f0012ab: link", "3c7c3f0012ab"),
        ("Serial Number: 692300415017", "692300415017"),
        ("serial_number=PCB069230041", "PCB069230041"),
        ("unique_id 17555321445566778899", "17555321445566778899"),
        ("ROCR_VISIBLE_DEVICES=GPU-f3a10000000000a1", "f3a10000000000a1"),
        ("node_guid: 3c7c:3f03:0012:ab00", "0012:ab00"),
        ("/dev/disk/by-id/nvme-Samsung_S5GXNX0R1", "S5GXNX0R1"),
    ],
)  # fmt: skip
def test_text_with_a_hostile_value_is_cleaned_of_it(text, gone):
    assert gone.lower() not in clean.clean(text, WHO).lower()


@pytest.mark.parametrize(
    "text",
    [
        *FACTS,
        "[2026-11-22 12:34:56] step 12 loss 0.5, 1.9 GB/s",
        "/opt/rocm-6.4.1/lib/librocblas.so.4: undefined symbol",
        "see https://github.com/ROCm/ROCm/issues/4437",
        "/dev/kfd and /dev/dri/renderD128 belong to group 992",
        "rocmatrix@sha256:" + "c" * 64,
        "tokens: 4096 of 8192",
        "Linux kernel 6.14.0-27-generic, Ubuntu Linux 24.04; 2 NUMA nodes, node 1, each node has gfx942 cards",
        "import a // b; https://github.com/ROCm/ROCm; wandb: Run data is saved locally in wandb/run-1",
        "ROCm/TheRock:dockerfiles; SLURM_JOB_ID=123 SLURM_NTASKS=2",
        "amdgpu version 6.10.5.1, amdgpu version: 6.10.5.1, amdgpu==6.10.5.1, v6.10.5.1",
        "rocm.docs.amd.com, user and kernel-space support matrix; ROCm/TheRock:dockerfiles",
        "torch.utils.data.dataloader raised; torch._C._cuda_init; step -u 3",
        "c10::Error at::native::add std::runtime_error",
    ],
)
def test_text_that_a_failure_is_read_from_stays(text):
    assert clean.clean(text, WHO) == text


def test_path_of_a_package_keeps_its_end():
    text = (
        'File "/srv/karla/rocmatrix/trainer/cli.py"; File "/mnt/x/lib/python3.12/site-packages/torch/cuda/__init__.py"'
    )
    shown = clean.clean(text, WHO)
    assert '"<checkout>/trainer/cli.py"' in shown
    assert '"<path>/site-packages/torch/cuda/__init__.py"' in shown


def test_path_of_this_program_elsewhere_keeps_its_end():
    text = 'File "/opt/acme/trainer/cli.py"; File "/opt/acme/trainer/clients/acme.py"'
    assert clean.clean(text, WHO) == 'File "<path>/trainer/cli.py"; File "<path>"'


def test_data_is_cleaned_in_keys_and_depths():
    data = {"karla": [{"a": ("/mnt/acme data/x y.csv", 1, None)}], "n": 2.5}
    assert clean.clean_data(data, WHO) == {"<name>": [{"a": ["<path>", 1, None]}], "n": 2.5}


def test_leaks_of_uncleaned_text_are_named_by_kind_alone():
    found = clean.leaks("karla has correct horse battery in /srv/karla/x", WHO)
    assert found == ("a secret of the environment", "a name of the host or its user", "a private folder")
    assert clean.leaks(clean.clean("karla has correct horse battery in /srv/karla/x", WHO), WHO) == ()


def test_name_in_angle_brackets_is_found_by_the_second_look():
    assert clean.leaks("signed by <karla>", WHO) == ("a name of the host or its user",)
    assert clean.leaks("signed by <name> at <path>", Identity(names=("name", "path"))) == ()


HOSTILE = (
    "a", "1.", "f:", "/home/", "x-", "token=", "serial", "\\", "--a", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "\x1b]",
    "eyJaaaaaaaa.", "a.", "://", "'/", "[a", "login ", "Bearer ",
)  # fmt: skip


def _seconds(text: str) -> float:
    began = time.process_time()
    clean.clean(text, WHO)
    return time.process_time() - began


@pytest.mark.parametrize("hostile", HOSTILE)
def test_work_on_a_hostile_line_grows_no_faster_than_its_length(hostile):
    """Twice the length takes twice the time: an expression that looks at each pair of places takes four times."""
    text = hostile * (16_000 // len(hostile))
    ratios = (_seconds(2 * text) / _seconds(text) for _ in range(6))  # one sound pair is enough: load only adds
    assert any(ratio < 3 for ratio in ratios)


def test_private_key_without_an_end_is_taken_out_and_what_follows_another_line_stays():
    begin, body = "-----BEGIN RSA PRIVATE KEY-----", "b3BlbnNzaC1rZXkt\n" * 20
    assert clean.clean(f"{begin}\n{body}", WHO) == "<secret>"
    assert (
        clean.clean(f"{begin}\n{body}{begin}\n{body}-----END RSA PRIVATE KEY-----\nafter", WHO)
        == "<secret><secret>\nafter"
    )


def test_version_under_its_own_name_stays_and_an_address_does_not():
    versions = {"driver": "6.10.5.1", "host": "6.10.5.1", "driver_version": "10.3.68.117", "torch": "2.7.1"}
    cleaned = clean.clean_data(versions, WHO)
    assert cleaned == {"driver": "6.10.5.1", "host": "<address>", "driver_version": "<address>", "torch": "2.7.1"}


UNLIKE = (
    "aBc\u0130\u00df\u1e9e\u017fK.-_ \x1b\x00\n[1m<>/"  # letters whose other case has another length, signs of forms
)


@settings(max_examples=40)
@given(st.text(UNLIKE, min_size=3, max_size=9), st.text(max_size=30), st.text(max_size=30))
def test_cleaned_text_has_no_leak(word, before, after):
    who = Identity(names=(word,), secrets=(word,), folders=((f"/{word}", "<home>"),))
    for text in (f"{before}{word}{after}", f"{before}{word.swapcase()}{after}", f"{before}/{word.upper()}/{after}"):
        assert clean.leaks(clean.clean(text, who), who) == ()
