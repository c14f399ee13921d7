"""Images that somebody changed after their build, each refused with what was changed; the image as built passes.

All are derived from one honest image: the STAND-IN of a pruned ROCm cell, built by its own recipe on a real engine.
Each is sealed again, as a forger would, so that its contents alone give it away.
"""

import functools
import io
import struct
import subprocess
import tarfile
from contextlib import suppress

import docker.errors
import pytest

from rocmatrix.containers import engine, label_integrity
from rocmatrix.images import build, render
from rocmatrix.matrix.kernel_library import Baseline
from rocmatrix.verify import proof, settings
from tests.fixtures import cells
from tests.fixtures.stand_ins import stand_in_cell
from tests.left_out import long, one_of

pytestmark = pytest.mark.container

GFX1100 = cells.MATRIX.cell("rocm7.2-torch2.12.1-gfx1100")
TODAY = "2026-11-22"
REPOSITORY = "rocmatrix-test-tampered"
SITE = "/opt/venv/lib/python3.11/site-packages"  # of the STAND-IN's base
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 7, 0, 0, 0).hex()  # cap_setuid, effective
RECORDED = (
    "import base64, hashlib, pathlib, re, sys\n"
    f"code = pathlib.Path('{SITE}/numpy/__init__.py'); code.write_text('EVIL = 1\\n')\n"
    f"record = next(pathlib.Path('{SITE}').glob('numpy-*.dist-info')) / 'RECORD'\n"
    "new = base64.urlsafe_b64encode(hashlib.sha256(code.read_bytes()).digest()).rstrip(b'=').decode()\n"
    "record.write_text(re.sub(r'(numpy/__init__.py),.*', rf'\\1,sha256={new},9', record.read_text()))\n"
)
ADD_PACKAGE = "echo >> /var/lib/dpkg/status"  # scripts of packages may then have written
LIBC = "$(find /lib /usr/lib -name libc.so.6 | head -1)"
# What is done to the image, as root; the code of the finding; what it names.
FILES = {
    "loader-cache-that-leads-elsewhere": (
        f"{ADD_PACKAGE} && mkdir /evil && cp {LIBC} /evil && ldconfig /evil && rm -r /evil",
        "RM662", "/etc/ld.so.cache: libc.so.6 is /evil/libc.so.6",
    ),
    "bundle-with-a-certificate-more": (
        f"{ADD_PACKAGE} && mkdir -p /etc/ssl/certs && printf -- '-----BEGIN CERTIFICATE-----\\nRVZJTA==\\n"
        "-----END CERTIFICATE-----\\n' >> /etc/ssl/certs/ca-certificates.crt",
        "RM662", "/etc/ssl/certs/ca-certificates.crt: 1 certificates of no package",
    ),
    "link-of-the-base-to-another-program": (
        f"{ADD_PACKAGE} && ln -sf perl /usr/bin/pydoc3", "RM662", "/usr/bin/pydoc3",
    ),
    "wheel-file-changed": (f"echo 'EVIL = 1' >> {SITE}/torch/__init__.py", "RM660", f"{SITE}/torch/__init__.py"),
    "wheel-file-changed-and-its-record": (f'python3 -c "{RECORDED}"', "RM660", f"{SITE}/numpy/__init__.py"),
    "wheel-file-removed": (f"rm {SITE}/numpy/__init__.py", "RM660", f"{SITE}/numpy/__init__.py"),
    "wheel-file-a-symlink": (
        f"ln -sf {SITE}/torch/__init__.py {SITE}/numpy/__init__.py", "RM660", f"{SITE}/numpy/__init__.py",
    ),
    "wheel-file-a-hard-link": (
        f"ln -f /etc/passwd {SITE}/numpy/__init__.py", "RM660", f"{SITE}/numpy/__init__.py",
    ),
    "wheel-file-of-another-owner": (
        f"chown 10001 {SITE}/numpy/__init__.py", "RM660", f"{SITE}/numpy/__init__.py (644 10001:0)",
    ),
    "pth-file": (f"echo 'import os' > {SITE}/evil.pth", "RM660", f"{SITE}/evil.pth"),
    "unlocked-module": (f"echo > {SITE}/leftpad.py", "RM660", f"{SITE}/leftpad.py"),
    "sitecustomize": (f"echo > {SITE}/sitecustomize.py", "RM660", f"{SITE}/sitecustomize.py"),
    "extension-module-that-shadows": (
        f"echo > {SITE}/numpy.cpython-311-x86_64-linux-gnu.so", "RM660", "/numpy.cpython-311-x86_64-linux-gnu.so",
    ),
    "sourceless-byte-code": (
        f"cp {SITE}/torch/__pycache__/*.pyc {SITE}/evil.pyc", "RM660", f"{SITE}/evil.pyc",
    ),
    "byte-code-of-no-source": (
        f"mkdir -p {SITE}/__pycache__ && echo > {SITE}/__pycache__/evil.cpython-311.pyc",
        "RM660", f"{SITE}/__pycache__/evil.cpython-311.pyc",
    ),
    "command-changed": ("echo exit 0 > /opt/venv/bin/pip", "RM660", "/opt/venv/bin/pip"),
    "program-earlier-on-the-path": ("cp /usr/bin/id /opt/venv/bin/ls", "RM660", "/opt/venv/bin/ls"),
    "interpreter-exchanged": ("ln -sf /usr/bin/perl /opt/venv/bin/python3", "RM660", "/opt/venv/bin/python3"),
    "environment-opened-to-the-system": (
        "sed -i s/false/true/ /opt/venv/pyvenv.cfg", "RM660", "/opt/venv/pyvenv.cfg",
    ),
    "record-left-out": (f"rm {SITE}/torch-*.dist-info/RECORD", "RM660", ".dist-info/RECORD"),
    "trainer-changed": ("echo >> /opt/rocmatrix/trainer/__main__.py", "RM661", "/opt/rocmatrix/trainer/__main__.py"),
    "trainer-extended": ("echo > /opt/rocmatrix/torch.py", "RM661", "/opt/rocmatrix/torch.py"),
    "trainer-cut": ("rm /opt/rocmatrix/trainer/__main__.py", "RM661", "/opt/rocmatrix/trainer/__main__.py"),
    "set-uid-under-a-known-name": (
        "cp /bin/sh /usr/local/bin/su && chmod 4755 /usr/local/bin/su", "RM217", "/usr/local/bin/su",
    ),
    "set-uid-in-another-mode": ("chmod 4757 /usr/bin/su", "RM217", "/usr/bin/su"),
    "set-gid": ("chmod g+s /usr/bin/tee", "RM217", "/usr/bin/tee"),
    "capability": (
        f"python3 -c \"import os; os.setxattr('/usr/bin/env', 'security.capability', bytes.fromhex('{CAPABILITY}'))\"",
        "RM217", "/usr/bin/env",
    ),
    "device": ("mknod /opt/mem c 1 1", "RM217", "/opt/mem"),
    "open-to-all": ("chmod o+w /usr/lib/python3.11", "RM217", "/usr/lib/python3.11"),
    "preloaded-library": ("echo /x.so > /etc/ld.so.preload", "RM662", "/etc/ld.so.preload"),
    "second-root": ("echo 'toor:x:0:0::/:/bin/sh' >> /etc/passwd", "RM662", "/etc/passwd: toor"),
    "system-library-changed": (
        "echo >> /usr/lib/x86_64-linux-gnu/libexpat.so.1.8.10", "RM662", "/usr/lib/x86_64-linux-gnu/libexpat.so.1.8.10",
    ),
    "standard-library-changed": ("echo >> /usr/lib/python3.11/os.py", "RM662", "/usr/lib/python3.11/os.py"),
    "standard-library-extended": (
        "echo > /usr/lib/python3.11/usercustomize.py", "RM662", "/usr/lib/python3.11/usercustomize.py",
    ),
    "program-in-usr-local": ("cp /usr/bin/id /usr/local/bin/ls", "RM662", "/usr/local/bin/ls"),
    "system-file-removed": ("rm /etc/debian_version", "RM662", "/etc/debian_version"),
    "certificate-added": (
        "cat /usr/share/ca-certificates/mozilla/*.crt | head -40 >> /etc/ssl/certs/ca-certificates.crt",
        "RM662", "/etc/ssl/certs/ca-certificates.crt",
    ),
    "group-of-root": ("sed -i s/^root:x:0:/root:x:0:daemon/ /etc/group", "RM662", "/etc/group"),
    "run-folder-filled": ("echo > /training/torch.py", "RM662", "/training/torch.py"),
    "system-program-a-link-to-a-volume": ("ln -sf /cache/tee /usr/bin/tee", "RM662", "/usr/bin/tee"),
    "system-library-a-link-to-another": (
        "ln -sf libz.so.1 /usr/lib/x86_64-linux-gnu/libexpat.so.1.8.10", "RM662", "/libexpat.so.1.8.10",
    ),
    "package-moved-out-and-linked": (
        f"mv {SITE}/numpy /cache/numpy && ln -s /cache/numpy {SITE}/numpy", "RM660", f"{SITE}/numpy/__init__.py",
    ),
    "environment-moved-out-and-linked": (
        "mv /opt/venv /cache/venv && ln -s /cache/venv /opt/venv", "RM660", "/opt/venv/pyvenv.cfg",
    ),
    "pth-with-a-line-end-in-its-name": (
        f"python3 -c \"open('{SITE}/evil\\x0a.pth', 'w').write('import os')\"", "RM660", f"{SITE}/evil\n.pth",
    ),
    "module-with-a-name-of-no-text": (
        f"python3 -c \"open(b'{SITE}/evil\\xff.py', 'w')\"", "RM660", f"{SITE}/evil\udcff.py",
    ),
}  # fmt: skip
# Changes that touch no path of each other are made in one image: each is to be found, with its code and its place.
TOGETHER = (
    # dpkg's status changed: what scripts of packages write is judged by what it holds
    (
        "loader-cache-that-leads-elsewhere", "bundle-with-a-certificate-more", "link-of-the-base-to-another-program",
    ),
    (
        "wheel-file-changed", "wheel-file-changed-and-its-record", "pth-file", "unlocked-module", "sitecustomize",
        "sourceless-byte-code", "byte-code-of-no-source", "command-changed", "program-earlier-on-the-path",
        "pth-with-a-line-end-in-its-name", "module-with-a-name-of-no-text", "trainer-changed",
        "set-uid-under-a-known-name", "set-gid", "capability", "device", "second-root", "run-folder-filled",
        "preloaded-library",
    ),
    (
        "wheel-file-removed", "extension-module-that-shadows", "record-left-out", "trainer-extended",
        "set-uid-in-another-mode", "open-to-all", "system-library-changed", "standard-library-changed",
        "standard-library-extended", "program-in-usr-local", "system-file-removed", "certificate-added",
        "group-of-root",
    ),
    # What is wrong with the environment as such is stated alone, without its files.
    (
        "environment-opened-to-the-system", "trainer-cut", "system-program-a-link-to-a-volume",
        "system-library-a-link-to-another",
    ),
    ("wheel-file-a-symlink", "interpreter-exchanged"),
    ("wheel-file-a-hard-link",),
    ("wheel-file-of-another-owner",),
    ("package-moved-out-and-linked",),
    ("environment-moved-out-and-linked",),
)  # fmt: skip
SETTINGS = {
    "user": ("USER 0", "User is '0'"),
    "entry-point": ('ENTRYPOINT ["sh"]', "Entrypoint is ['sh']"),
    "command": ('CMD ["train"]', "Cmd is ['train']"),
    "folder": ("WORKDIR /tmp", "WorkingDir is '/tmp'"),
    "preload": ("ENV LD_PRELOAD=/x.so", "LD_PRELOAD=/x.so is not the recipe's"),
    "path": ("ENV PATH=/tmp:/usr/bin", "PATH=/tmp:/usr/bin, not"),
    "modules": ("ENV PYTHONPATH=/tmp", "PYTHONPATH=/tmp, not"),
    "override": ("ENV HSA_OVERRIDE_GFX_VERSION=10.3.0", "HSA_OVERRIDE_GFX_VERSION=10.3.0 is not the recipe's"),
    "volume": ("VOLUME /opt/venv", "Volumes is"),
    "port": ("EXPOSE 22", "ExposedPorts is"),
    "health": ("HEALTHCHECK CMD curl somewhere", "Healthcheck is"),
    "trigger": ("ONBUILD RUN true", "OnBuild is"),
    "shell": ('SHELL ["/evil"]', "Shell is"),
    "signal": ("STOPSIGNAL SIGKILL", "StopSignal is"),
}


class Honest:
    """The image as built, its cell and recipe, and how it is proved."""

    def __init__(self, client, cell, root, wheels, base):
        self.client, self.cell, self.root, self.wheels, self.base = client, cell, root, wheels, base
        self.matrix = cells.MATRIX
        self.built = self.build()
        self.base_read = proof.base_of(client, self.built.image.labels, cell)

    def build(self):
        return build.build(self.cell, root=self.root, base=self.base, wheelhouse=self.wheels)

    def prove(self, reference):
        """Prove an image by the base as it was read once for all proofs of this file."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(proof, "base_of", lambda *_: self.base_read)
            return proof.of_image(self.matrix, self.cell, reference, today=TODAY, root=self.root, wheels=self.wheels)

    def derived(self, name, dockerfile, *, sealed=True):
        """Build an image FROM the honest one; with a seal of its own, as a forger would make it."""
        tag = f"{REPOSITORY}:{name}"
        text = f"FROM {self.built.tag}\n{dockerfile}\n".encode()
        self.client.images.build(fileobj=io.BytesIO(text), tag=tag, rm=True)
        if sealed:
            label_integrity.put(self.client, tag)
        return tag


@pytest.fixture(scope="module")
def honest(client, small_base, tmp_path_factory):
    wheels = tmp_path_factory.mktemp("wheels")
    cell = stand_in_cell(GFX1100, wheels, name="stand-in-tampered")
    root = tmp_path_factory.mktemp("checkout")
    (root / "trainer").mkdir()
    (root / "trainer" / "__init__.py").write_text('"""A STAND-IN."""\n')
    (root / "trainer" / "__main__.py").write_text("print('trained')\n")
    render.write_recipe(cell, root / "images" / cell.name)
    made = Honest(client, cell, root, wheels, small_base)
    try:
        size = next(c for c in made.prove(made.built.tag).checks if c.name == "size").data["bytes"]
        row = {"bytes": size, "date": TODAY, "of": "a STAND-IN"}
        made.matrix = cells.MATRIX.model_copy(
            update={"baselines": [Baseline.model_validate({"cell": cell.name, "sizes": [row]})]}
        )
        yield made
    finally:
        client.images.remove(made.built.tag, force=True)
        with suppress(docker.errors.APIError):  # 409: others remove images on the same engine
            client.images.prune(filters={"dangling": True, "label": f"org.rocmatrix.cell={cell.name}"})


@pytest.fixture(scope="module")
def base_once(honest):
    """Return the base's files and settings."""
    return honest.base_read


@pytest.fixture
def remove(client):
    tags = []
    yield tags.append
    for tag in tags:
        if engine.image(client, tag):
            client.images.remove(tag, force=True)


def named(proven):
    return {(finding.code, place) for finding in proven.findings for place in finding.places}


def test_image_as_built_is_proven(honest):
    proven = honest.prove(honest.built.tag)
    assert proven.proven, [finding.summary for finding in proven.findings]
    assert {check.status for check in proven.checks} == {"passed"}
    again = next(check for check in honest.prove(honest.built.tag).checks if check.name == "byte code")
    assert (again.status, "compared before" in again.summary) == ("passed", True)


@pytest.fixture(scope="module")
def found_in(honest, base_once):
    """Return a function: a kind of change to all that the proof of the image with its group's changes finds."""

    @functools.cache
    def found_in(number):
        changes = " && ".join(f"( {FILES[kind][0].replace(chr(10), '; ')} )" for kind in TOGETHER[number])
        tag = honest.derived(f"together-{number}", f"USER 0\nRUN {changes}\nUSER 10001:10001")
        try:
            return named(honest.prove(tag))
        finally:
            honest.client.images.remove(tag, force=True)

    return lambda kind: found_in(next(number for number, kinds in enumerate(TOGETHER) if kind in kinds))


def test_groups_of_changes_hold_every_change_once():
    assert sorted(kind for kinds in TOGETHER for kind in kinds) == sorted(FILES)


@pytest.mark.parametrize("kind", one_of(sum(TOGETHER, ()), sum(map(len, TOGETHER[:2]))))
def test_tampered_image_is_refused_with_what_was_changed(found_in, kind):
    _, code, place = FILES[kind]
    found = found_in(kind)
    assert [1 for one, where in found if one == code and place in where], sorted(found)


@pytest.mark.parametrize("kind", one_of(SETTINGS, 5))
def test_other_settings_are_refused_with_what_they_are(honest, base_once, remove, kind):
    instruction, words = SETTINGS[kind]
    tag = honest.derived(kind, instruction, sealed=False)  # sealing would pull a trigger
    remove(tag)
    check = settings.check(honest.client.images.get(tag).attrs, honest.cell, base_once.config)
    changed, unsealed = check.findings
    assert (changed.code, [place for place in changed.places if words in place] != []) == ("RM663", True), (
        changed.places
    )
    assert unsealed.places == (label_integrity.LABEL,)


LABELS = ["org.rocmatrix.forced=", "devcontainer.metadata=[]", "org.rocmatrix.promoted=yes"]


@long
@pytest.mark.parametrize("label", LABELS)
def test_label_that_no_build_writes_is_refused_though_it_is_sealed(honest, base_once, remove, label):
    tag = honest.derived("label", f"LABEL {label}")
    remove(tag)
    places = [place for code, place in named(honest.prove(tag)) if code == "RM219"]
    assert [place for place in places if place.startswith(label.partition("=")[0])]


def test_file_that_a_later_layer_hides_is_refused_by_the_count_of_layers_and_a_label_by_its_name(
    honest, base_once, remove
):
    layers = "USER 0\nRUN echo > /secret\nRUN rm /secret\nUSER 10001:10001"
    tag = honest.derived("hidden", f"{layers}\nLABEL {LABELS[0]}")
    remove(tag)
    found = named(honest.prove(tag))
    assert ("RM662", f"6 on top of {honest.base}, where the recipe makes 4") in found
    ((code, place),) = found - {("RM662", f"6 on top of {honest.base}, where the recipe makes 4")}
    assert (code, place.startswith("org.rocmatrix.forced")) == ("RM219", True)


def test_derived_image_inherits_no_seal_and_is_built_anew(honest, base_once, remove):
    tag = honest.derived("inherits", "LABEL more=1", sealed=False)
    remove(tag)
    assert ("RM663", label_integrity.LABEL) in named(honest.prove(tag))
    honest.client.images.get(tag).tag(*honest.built.tag.split(":"))
    again = honest.build()
    assert again.rebuilt
    assert engine.image(honest.client, honest.built.tag).sealed


@long
def test_flattened_image_is_not_on_the_base(honest, base_once, remove):
    """The same files in one layer, with the same settings and a seal: what the layers were is gone."""
    tag = f"{REPOSITORY}:flat"
    remove(tag)
    container = honest.client.containers.create(honest.built.tag)
    try:
        exported = subprocess.run(["docker", "export", container.id], capture_output=True, check=True)
        subprocess.run(["docker", "import", "-", tag], input=exported.stdout, capture_output=True, check=True)
    finally:
        container.remove()
    proven = honest.prove(tag)
    assert [place for code, place in named(proven) if code == "RM662" and "are not those of" in place]


def test_wheels_that_are_not_at_hand_prove_nothing(honest, base_once, tmp_path):
    wheels = [file for file, _ in honest.cell.wheels]
    honest_wheels, honest.wheels = honest.wheels, tmp_path
    try:
        (tmp_path / wheels[0]).write_bytes(b"other")
        proven = honest.prove(honest.built.tag)
    finally:
        honest.wheels = honest_wheels
    expected = {f"{wheels[0]} (other bytes than the lock names)", *(f"{file} (missing)" for file in wheels[1:])}
    assert {place for code, place in named(proven) if code == "RM660"} == expected


def test_tar_of_a_capability_is_read():
    """What an engine exports for one: a header of its own, which is read by name."""
    from rocmatrix.verify.devicecode.filetree import in_tar

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("bin/x")
        member.pax_headers = {"SCHILY.xattr.security.capability": "x"}
        archive.addfile(member)
    buffer.seek(0)
    assert [entry.attributes for entry in in_tar(buffer)] == [("security.capability",)]


# What a builder does that was tampered with: its image has the right layers, and its own seal.
COMPILED_OTHERWISE = f"""\
import importlib.util, marshal, pathlib
source = pathlib.Path("{SITE}/torch/__init__.py")
code = compile(source.read_text() + "EVIL = 1", str(source), "exec")
head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source.read_bytes())
pathlib.Path(importlib.util.cache_from_source(str(source))).write_bytes(head + marshal.dumps(code))
"""


def test_byte_code_that_is_not_its_sources_is_refused(honest, base_once):
    """The last test: it leaves the tag to an image that is not honest."""
    other = honest.cell.model_copy(update={"name": "stand-in-tampered"})
    dockerfile = honest.root / "images" / other.name / "Dockerfile"
    text = dockerfile.read_text()
    (honest.wheels / "evil.py").write_text(COMPILED_OTHERWISE)
    last = "    && mkdir --mode=1777 /cache /training \\\n"
    assert last in text
    dockerfile.write_text(text.replace(last, f"    && /opt/venv/bin/python /run/wheelhouse/evil.py \\\n{last}"))
    proven = honest.prove(honest.build().tag)
    place = f"{SITE}/torch/__pycache__/__init__.cpython-311.pyc (not what its source compiles to)"
    assert named(proven) == {("RM664", place)}
