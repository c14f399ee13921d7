"""What packages list explains a path, and nothing else does."""

import hashlib
from dataclasses import replace

from rocmatrix.verify.files.dpkg import Packages, merged
from rocmatrix.verify.files.tree import Row, Tree


def row(data=b"", **more):
    known = {"kind": "file", "mode": 0o644, "uid": 0, "gid": 0} | more
    if known["kind"] != "file":
        return Row(**known)
    return Row(sha256=hashlib.sha256(data).digest(), md5=hashlib.md5(data).digest(), **known)


def test_paths_count_as_on_a_system_whose_folders_were_merged():
    assert (merged("/bin/su"), merged("/lib64/ld.so")) == ("/usr/bin/su", "/usr/lib64/ld.so")
    assert (merged("/usr/bin/su"), merged("/library")) == ("/usr/bin/su", "/library")


def test_text_that_is_no_digest_explains_nothing():
    made = Tree()
    made.texts["/var/lib/dpkg/info/x.md5sums"] = b"  usr/bin/x\nz  usr/bin/y\n"
    packages = Packages(made)
    assert not packages.explain("/usr/bin/x", replace(row(b"x"), md5=b"x"), {}, written={})
