"""What the engine's filter of system calls takes and refuses, measured: the reasons that features give."""

import platform

import pytest

from rocmatrix.containers import capability
from rocmatrix.containers.settings import AddCapability, SecurityOption

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif("x86_64" not in platform.machine(), reason="numbers of calls are x86_64's"),
]

CALLS = """
import ctypes
libc = ctypes.CDLL(None)
no_randomisation = 0x0040000
print(libc.syscall(238, 0, None, 0), libc.syscall(237, None, 0, 0, None, 0, 0), libc.syscall(135, no_randomisation))
"""
REFUSED, TAKEN = -1, 0


def calls(client, debian, *names):
    """Return what set_mempolicy, mbind and personality give to a user who is not root."""
    settings = list(capability.settings_of(names))
    answer = client.containers.run(
        debian,
        ["python3", "-c", CALLS],
        remove=True,
        user="12345:12345",
        network_mode="none",
        cap_drop=["ALL"],
        cap_add=[s.value for s in settings if isinstance(s, AddCapability)],
        security_opt=["no-new-privileges:true", *(s.value for s in settings if isinstance(s, SecurityOption))],
    )
    return [int(word) for word in answer.split()]


def test_filter_without_a_feature_refuses_all_three(client, debian):
    assert calls(client, debian) == [REFUSED, REFUSED, REFUSED]


def test_numa_opens_memory_policies_and_nothing_else(client, debian):
    assert calls(client, debian, "numa") == [TAKEN, TAKEN, REFUSED]


def test_debugger_can_switch_off_address_randomisation(client, debian):
    assert calls(client, debian, "debugger")[2] >= 0
