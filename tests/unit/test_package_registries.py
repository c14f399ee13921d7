"""No tracked text names the host of a package registry: whose index is used is a setting of each machine."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# In parts, so that this file does not name one either.
HOSTS = (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("crates", "io"))
NAMED = re.compile(rb"|".join(rb"\b" + re.escape(".".join(parts).encode()) + rb"\b" for parts in HOSTS), re.IGNORECASE)


def named(data: bytes) -> list[int]:
    """Return the numbers of the lines that name one."""
    return [number for number, line in enumerate(data.splitlines(), 1) if NAMED.search(line)]


def test_host_of_a_package_registry_is_named_in_no_tracked_file() -> None:
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this is no checkout of git: tracked files are not known")
    files = [ROOT / name.decode() for name in done.stdout.split(b"\0") if name]
    assert len(files) > 1000
    found = [(path.relative_to(ROOT), named(path.read_bytes())) for path in files if path.is_file()]
    assert [f"{path}:{lines[0]}" for path, lines in found if lines] == []


@pytest.mark.parametrize("parts", HOSTS)
def test_host_is_found_within_an_address(parts: tuple[str, str]) -> None:
    host = ".".join(parts)
    assert named(f"first\nLooking in indexes: https://files.{host.upper()}/simple, other\n".encode()) == [2]
    assert named(f"https://{parts[0]}.example/{parts[1]}".encode()) == []
