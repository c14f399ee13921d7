"""System files against a base and the package lists, on SYNTHETIC rows: each thing that neither brings is named."""

import hashlib
from dataclasses import replace

import pytest

from rocmatrix.verify.files import system
from rocmatrix.verify.files.tree import Row, Tree
from tests.unit.rocmatrix.verify.files.test_scripts_output import cache_of, image, pem

LISTED = {"/usr/bin/tool": b"tool", "/usr/lib/python3.12/os.py": b"code", "/etc/tool.conf": b"conf"}
LAYERS = ["base", "packages", "environment", "trainer", "folder"]


def row(data=b"", **more):
    known = {"kind": "file", "mode": 0o644, "uid": 0, "gid": 0} | more
    if known["kind"] != "file":
        return Row(**known)
    return Row(sha256=hashlib.sha256(data).digest(), md5=hashlib.md5(data).digest(), **known)


FOLDER = row(kind="folder", mode=0o755)


def tree(**texts):
    made = Tree()
    made.rows = {path: row(data) for path, data in LISTED.items()}
    made.rows |= {
        "/usr": FOLDER,
        "/cache": replace(FOLDER, mode=0o1777),
        "/training": replace(FOLDER, mode=0o1777),
        "/usr/lib/python3.12/__pycache__/os.cpython-312.pyc": row(b"compiled"),
        "/usr/bin/other": row(kind="link", link="tool", mode=0o777),
        "/etc/ld.so.cache": row(b"cache"),
        "/etc/passwd": row(b"users"),
        "/etc/alternatives/pager": row(kind="link", link="/usr/bin/tool", mode=0o777),
        "/usr/bin/pager": row(kind="link", link="/etc/alternatives/pager", mode=0o777),
        "/var/lib/dpkg/status": row(b"status"),
        "/opt/venv/bin/evil": row(b"not ours to see here"),
    }
    sums = [f"{hashlib.md5(data).hexdigest()}  {path[1:]}" for path, data in LISTED.items() if path != "/etc/tool.conf"]
    made.texts = {
        "/var/lib/dpkg/info/tool.list": "\n".join(["/.", "/bin/tool", "/usr/bin/other", *LISTED]).encode(),
        "/var/lib/dpkg/info/tool.md5sums": "\n".join(sums).encode(),
        "/var/lib/dpkg/status": f"Conffiles:\n /etc/tool.conf {hashlib.md5(b'conf').hexdigest()}\n".encode(),
        "/etc/ld.so.cache": cache_of([]),
        "/etc/passwd": b"root:x:0:0:root:/root:/bin/bash\nuser:x:7:7::/:/bin/false\n",
        "/etc/shadow": b"root:*:1:0:::::\nuser:!:1:::::\n",
    } | {name: text.encode() for name, text in texts.items()}
    return made


def base_of(made, **more):
    rows = {path: held for path, held in made.rows.items() if not path.startswith(("/opt", "/cache", "/training"))}
    return system.Base(**({"name": "debian:1", "layers": ("base",), "rows": rows, "config": {}} | more))


def places(made, base=None, layers=LAYERS):
    return {place for finding in system.check(made, layers, base).findings for place in finding.places}


def test_files_of_base_and_packages_pass_with_and_without_the_base():
    assert places(tree(), base_of(tree())) == set()
    assert places(tree()) == set()
    assert system.check(tree(), LAYERS, None).notes


ADDED = {
    "/etc/ld.so.preload": row(b"/x.so"),
    "/usr/local/bin/ls": row(b"x"),
    "/usr/lib/python3.12/sitecustomize.py": row(b"x"),
    "/usr/lib/python3/dist-packages/evil.py": row(b"x"),
    "/usr/lib/python3.12/__pycache__/evil.cpython-312.pyc": row(b"x"),
    "/usr/local/lib/python3.12/dist-packages/evil.pth": row(b"x"),
    "/training/torch.py": row(b"x"),
    "/cache/inductor": row(b"x"),
    "/etc/ld.so.conf.d/evil.conf": row(b"/evil"),
    "/usr/bin/perl": row(kind="link", link="/tmp/evil", mode=0o777),
    "/dev/mem": row(kind="other", mode=0o666, device=("c", 1, 1)),
    "/opt/other": row(b"x"),
    "/entry.sh": row(b"x"),
    "/usr/bin/.wh.tool": row(b""),
    "/etc/sudoers.d/all": row(b"x"),
}


@pytest.mark.parametrize("path", ADDED)
@pytest.mark.parametrize("with_base", [True, False])
def test_file_that_neither_brings_is_named(path, with_base):
    made = tree()
    base = base_of(made) if with_base else None
    made.rows[path] = ADDED[path]
    assert places(made, base) == {path}


@pytest.mark.parametrize("path", [*LISTED])
@pytest.mark.parametrize("with_base", [True, False])
def test_file_with_other_bytes_is_named(path, with_base):
    made = tree()
    base = base_of(made) if with_base else None
    made.rows[path] = row(b"other")
    found = places(made, base)
    assert path in found


WRITTEN = ("/etc/ld.so.cache", "/etc/passwd", "/etc/alternatives/pager")


def test_file_that_scripts_write_is_compared_with_the_base_where_no_package_was_added():
    made = tree()
    base = base_of(tree())
    made.rows |= {path: row(b"other") for path in WRITTEN[:2]}
    made.rows[WRITTEN[2]] = row(kind="link", link="/usr/bin/new", mode=0o777)
    assert places(made, base) == set(WRITTEN)
    made.rows["/var/lib/dpkg/status"] = row(b"more packages")
    assert places(made, base) == {"/etc/passwd"}
    assert places(made) == set()


@pytest.mark.parametrize("path", ["/etc/alternatives/evil", "/etc/ssl/certs/evil.pem", "/etc/systemd/system/x"])
def test_file_where_scripts_write_links_is_named(path):
    made = tree()
    made.rows[path] = row(b"code")
    assert places(made) == {path}


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/usr/local/bin/ls", "/etc/alternatives/pager"),
        ("/usr/bin/ls", "/etc/alternatives/gone"),
        ("/usr/bin/ls", "/tmp/x"),
        ("/usr/lib/python3.12/evil.py", "/etc/alternatives/pager"),
        ("/usr/lib/x.so", "/etc/python3.12/x"),
    ],
)
def test_link_that_no_package_makes_is_named(path, link):
    made = tree()
    made.rows[path] = row(kind="link", link=link, mode=0o777)
    assert places(made) == {path}


@pytest.mark.parametrize("added", [False, True], ids=["with the base's packages", "with packages on top"])
@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/usr/bin/tool", "/usr/bin/other"),  # a file of a package is no link, wherever it leads
        ("/usr/bin/tool", "/cache/tool"),
        ("/usr/bin/other", "/cache/tool"),  # a link of a package, led to where a volume is
        ("/usr/bin/other", "../../training/tool"),
        ("/usr/bin/other", "/proc/self/cwd/tool"),
        ("/etc/alternatives/pager", "/cache/tool"),
        ("/etc/alternatives/pager", "../../../../../../tmp/tool"),
        ("/etc/ssl/certs/more.pem", "/training/more.pem"),
    ],
)
def test_link_that_leads_out_of_the_system_is_named(path, link, added):
    made, base = tree(), base_of(tree())
    made.rows[path] = row(kind="link", link=link, mode=0o777)
    if added:
        made.rows["/var/lib/dpkg/status"] = row(b"more packages")
    assert path in places(made, base)
    assert path in places(made)


@pytest.mark.parametrize("added", [False, True], ids=["no package on top", "packages on top"])
@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/usr/bin/other", "perl"),  # links of packages, whose lists hold no targets
        ("/usr/bin/other", "/bin/perl"),
        ("/etc/alternatives/pager", "/usr/bin/perl"),
        ("/usr", "/var/lib"),  # in the place of a folder
    ],
)
def test_link_of_the_base_led_to_another_file_of_it_is_named(path, link, added):
    honest = tree()
    honest.rows |= {"/usr/bin/perl": row(b"tool"), "/var/lib": FOLDER}
    made, base = tree(), base_of(honest)
    made.rows = {**honest.rows, path: row(kind="link", link=link, mode=0o777)}
    if added:
        made.rows["/var/lib/dpkg/status"] = row(b"more")
    assert path in places(made, base)


def test_link_of_the_base_stays_as_it_is_where_no_package_was_added():
    made = tree()
    made.rows["/usr/bin/other"] = row(kind="link", link="/usr/lib/ssl/certs/tool", mode=0o777)  # by way of a link
    assert places(made, base_of(tree())) == {"/usr/bin/other"}


def test_link_that_a_package_on_top_leads_to_its_own_new_file_is_expected():
    made = tree()
    made.rows |= {
        "/usr/bin/other": row(kind="link", link="tool.2", mode=0o777),
        "/usr/bin/tool.2": row(b"tool"),
        "/var/lib/dpkg/status": row(b"more"),
    }
    made.texts["/var/lib/dpkg/info/tool.md5sums"] += f"\n{hashlib.md5(b'tool').hexdigest()}  usr/bin/tool.2".encode()
    assert places(made, base_of(tree())) == set()


def test_folder_in_the_place_of_a_file_is_named():
    made, base = tree(), base_of(tree())
    made.rows["/usr/bin/tool"] = FOLDER
    assert "/usr/bin/tool" in places(made, base)
    assert "/usr/bin/tool" in places(made)


def test_links_that_debootstrap_makes_below_dev_pass_without_the_base():
    made = tree()
    made.rows["/dev/fd"] = row(kind="link", link="/proc/self/fd", mode=0o777)
    assert places(made) == set()


def test_program_of_the_base_is_expected_without_set_id_and_with_its_mode_otherwise():
    base = base_of(tree())
    base.rows["/usr/bin/tool"] = row(b"tool", mode=0o4755)
    made = tree()
    made.rows["/usr/bin/tool"] = row(b"tool", mode=0o755)
    assert places(made, base) == set()
    made.rows["/usr/bin/tool"] = row(b"tool", mode=0o4755)
    assert places(made, base) == {"/usr/bin/tool (4755 0:0, not 755 0:0)"}
    made.rows["/usr/bin/tool"] = row(b"tool", mode=0o700)
    assert places(made, base) == {"/usr/bin/tool (700 0:0, not 755 0:0)"}


def test_folder_of_the_base_keeps_its_set_id():
    base, made = base_of(tree()), tree()
    base.rows["/usr"] = made.rows["/usr"] = replace(FOLDER, mode=0o2755)
    assert places(made, base) == set()
    made.rows["/usr"] = FOLDER
    assert places(made, base) == {"/usr (755 0:0, not 2755 0:0)"}


def test_attributes_are_named_on_a_file_of_a_package_too():
    made = tree()
    made.rows["/usr/bin/tool"] = row(b"tool", attributes=("security.capability",))
    assert places(made, base_of(tree())) == {"/usr/bin/tool"}
    assert places(made) == {"/usr/bin/tool"}


def test_file_of_the_base_may_not_be_missing_or_of_another_mode():
    made = tree()
    base = base_of(made)
    del made.rows["/usr/bin/tool"]
    assert places(made, base) == {"/usr/bin/tool"}
    made = tree()
    made.rows["/usr/bin/tool"] = row(b"tool", mode=0o4755)
    assert places(made, base) == {"/usr/bin/tool (4755 0:0, not 644 0:0)"}
    made.rows["/usr/bin/tool"] = row(b"tool", gid=5)
    assert places(made, base) == {"/usr/bin/tool (644 0:5, not 644 0:0)"}
    made.rows["/usr/bin/tool"] = row(b"tool")
    made.rows["/training"] = replace(FOLDER, mode=0o777)
    assert places(made, base) == {"/training (777 0:0)"}


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (["other", *LAYERS[1:]], "the first 1 are not those of debian:1"),
        ([*LAYERS, "more"], "5 on top of debian:1, where the recipe makes 4"),
        (LAYERS[:-1], "3 on top of debian:1, where the recipe makes 4"),
        ([], "the first 1 are not those of debian:1"),
    ],
)
def test_layers_are_the_bases_and_the_recipes(layers, words):
    assert places(tree(), base_of(tree()), layers) == {words}
    assert places(tree(), None, layers) == set()


@pytest.mark.parametrize(
    ("file", "line", "place"),
    [
        ("/etc/passwd", "toor:x:0:0::/:/bin/sh", "/etc/passwd: toor"),
        ("/etc/passwd", "toor:x:00:0::/:/bin/sh", "/etc/passwd: toor"),
        ("/etc/passwd", "user2::7:7::/:/bin/sh", "/etc/passwd: user2 has a password"),
        ("/etc/passwd", "toor:x: 0:5::/:/bin/sh", "/etc/passwd: toor"),
        ("/etc/passwd", "toor:x:+0", "/etc/passwd: toor"),
        ("/etc/passwd", "old:abc", "/etc/passwd: old has a password"),
        ("/etc/shadow", "old:abc", "/etc/shadow: old has a password"),
        ("/etc/shadow", "root::1::::::", "/etc/shadow: root has a password"),
        ("/etc/shadow", "root:$6$abc:1::::::", "/etc/shadow: root has a password"),
    ],
)
def test_users_that_allow_a_login_are_named(file, line, place):
    made = tree()
    made.texts[file] += f"{line}\n".encode()
    assert places(made) == {place}


def test_empty_system_fails():
    assert system.check(Tree(), [], None).status == "failed"


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("/etc/passwd", "root:x:0:0:again:/root:/bin/bash"),
        ("/etc/passwd", "staff:x:7:0::/:/bin/false"),
        ("/etc/passwd", "staff:*:7:7::/:/bin/false"),
        ("/etc/passwd", "staff:!:X0:7::/:/bin/false"),
        ("/etc/passwd", "staff:x"),
        ("/etc/passwd", "staff"),
        ("/etc/shadow", "staff:*"),
        ("/etc/shadow", "staff:!$6$abc:1"),
        ("/etc/shadow", "staff"),
    ],
)
def test_users_that_allow_no_login_are_not_named(file, line):
    made = tree()
    made.texts[file] += f"{line}\n".encode()
    assert places(made) == set()


def test_summary_and_notes_name_what_was_compared_with():
    made = tree()
    paths = len([path for path in made.rows if not path.startswith("/opt/venv")])
    alone = system.check(made, LAYERS, None)
    assert (alone.name, alone.summary) == ("system", f"{paths} paths, with package lists")
    words = "the engine does not hold the base image: system files were compared with the image's package lists alone"
    assert alone.notes == (words,)
    other = system.check(made, LAYERS, base_of(tree()))
    assert other.summary == f"{paths} paths, with debian:1 and package lists"
    assert other.notes == ("system files were compared with debian:1, which is not the cell's own base",)
    assert system.check(made, LAYERS, base_of(tree(), own=True)).notes == ()
    made.rows["/x"] = row(b"x")
    (finding,) = system.check(made, LAYERS, None).findings
    assert (finding.code, finding.what) == ("RM662", "not the base's and of no package")
    (nothing,) = system.check(Tree(), [], None).findings
    assert (nothing.code, nothing.what) == ("RM221", "there is no system to look into")


def test_mode_of_a_link_is_no_ones():
    made = tree()
    made.rows["/usr/bin/other"] = row(kind="link", link="tool", mode=0o700, uid=7)
    assert places(made, base_of(tree())) == set()


OWN = "/etc/ssl/certs/ca-certificates.crt"
CHOSEN = "/etc/ca-certificates.conf"


@pytest.mark.parametrize("changed", [[], ["/etc/ld.so.cache"], [OWN], [CHOSEN], ["/etc/ld.so.cache", OWN]])
def test_cache_and_certificates_are_held_to_what_makes_them_where_they_differ_from_the_base(changed):
    made = image(**{
        "/etc/ld.so.cache": cache_of([("libz.so.1", "/tmp/libz.so.1"), ("libc.so.6", "/tmp/libc.so.6")]),
        OWN: pem("EVIL"), CHOSEN: b"mozilla/a.crt\nmozilla/z.crt\nmozilla/e.crt\n",
    })  # fmt: skip
    cache = [f"/etc/ld.so.cache: {name} is /tmp/{name}" for name in ("libc.so.6", "libz.so.1")]
    bundle = [
        f"{CHOSEN}: mozilla/e.crt is not there", f"{CHOSEN}: mozilla/z.crt is not there",
        f"{OWN}: 1 certificates of no package, 1 missing",
    ]  # fmt: skip
    base = base_of(made, rows=made.rows | {path: row(b"before") for path in changed})
    for against, libraries, certificates in (
        (base, "/etc/ld.so.cache" in changed, bool({OWN, CHOSEN} & set(changed))),
        (None, True, True),
    ):
        found = {finding.what: list(finding.places) for finding in system.check(made, LAYERS, against).findings}
        assert found.get("libraries that the loader would take and ldconfig would not") == (
            cache if libraries else None
        )
        assert found.get("certificates that are not the packages' own") == (bundle if certificates else None)
