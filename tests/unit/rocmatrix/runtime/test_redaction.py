# ruff: noqa: E501 (texts stand as they were printed)
"""What is shared names no person and no machine, and keeps what the diagnosis needs."""

import pytest

from rocmatrix.runtime.redaction import redacted
from tests.fixtures.log_facts import FACTS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('File "/home/greg/Apps/main.py", line 3', 'File "/home/<user>/Apps/main.py", line 3'),
        (r"C:\Users\Greg\venv\torch", r"C:\Users\<user>\venv\torch"),
        ("Using eno4:10.3.68.117<0>", "Using eno4:<address><0>"),
        ("inet fe80::a86b:69ff:fe67:e3fe%veth1 up", "inet <address> up"),
        ("ether 3c:7c:3f:00:12:ab", "ether <mac>"),
        ("HF_TOKEN=hf_abcdefghijklmnop", "HF_TOKEN=<secret>"),
        ("MY_API_KEY: s3cr3tvalue", "MY_API_KEY: <secret>"),
        ("pip install --index-url https://me:pw@host/simple", "pip install --index-url https://<user>:<secret>@host/simple"),
        ("mail jane.doe@example.org", "mail <address>"),
        ("Oct  7 12:58:23 my-desktop kernel: [ 2237.944235] amdgpu", "Oct  7 12:58:23 <host> kernel: [ 2237.944235] amdgpu"),
        ("tf144:143468:143535 [1] NCCL INFO", "<host>:143468:143535 [1] NCCL INFO"),
        ("Serial Number: 6923004150", "Serial Number: <id>"),
        ("on deep7 by karla", "on <name> by <name>"),
    ],
)  # fmt: skip
def test_personal_data_is_removed(text, shown):
    assert redacted(text, ("deep7", "karla")) == shown


@pytest.mark.parametrize("text", FACTS)
def test_facts_for_the_diagnosis_stay(text):
    assert redacted(text, ("deep7",)) == text


def test_hostile_lines_come_to_an_end():
    for hostile in ("a" * 100_000, "1." * 50_000, "f:" * 50_000, "a@" * 50_000, "/home/" * 20_000, "x-" * 50_000):
        assert isinstance(redacted(hostile, ()), str)  # a form that ran away would never return
