# ruff: noqa: E501 (texts stand as programs print them)
"""What names a site, its people or their data leaves no bundle, whatever program printed it; prose of failures stays."""

import time

import pytest

from rocmatrix.evidence.bundle import clean
from rocmatrix.evidence.bundle.identity import Identity
from rocmatrix.evidence.bundle.sites import AFTER_PATHS, BEFORE_PATHS

WHO = Identity(names=("karla",), folders=(("/srv/karla", "<home>"),))


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("PBS_O_HOST=login1.hunter PBS_JOBID=12345.pbs01", "hunter"),
        ("PBS_O_HOST=login1.hunter PBS_JOBID=12345.pbs01", "pbs01"),
        ("LSB_HOSTS=a01n05 a01n06 and more", "a01n06"),
        ("mpirun -H gpulab01:8,gpulab02:8 -np 16", "gpulab02"),
        ("mpirun --host gpulab01,gpulab02 -np 16", "gpulab01"),
        ("srun -w gpulab[01-04] hostname", "gpulab"),
        ("slurmstepd-gpulab03: error: x", "gpulab03"),
        ("ssh: Could not resolve hostname gpulab03: Name or service not known", "gpulab03"),
        ("systemd[1]: Hostname set to <lab-mi50>.", "lab-mi50"),
        ("mounted storage.rrz.uni-koeln.de now", "koeln"),
        ("host gpu1.cs.ucl.ac.uk down", "ucl"),
        ("Author: Jane Doe <jane.doe@acme.example>", "Jane"),
        ("Signed-off-by: Jane Doe <jane.doe@acme.example>", "Doe"),
        ("sudo:    jdoe : TTY=pts/0 ; PWD=/home/jdoe ; USER=root ; COMMAND=/bin/ls", "jdoe"),
        ("pam_unix(sshd:session): session opened for user jdoe(uid=1000) by (uid=0)", "jdoe"),
        ("Accepted publickey for jdoe from 10.1.2.3 port 5555 ssh2", "jdoe"),
        ("Failed password for invalid user jdoe from 10.1.2.3 port 5555", "jdoe"),
        ("bind as uid=jdoe,ou=people,dc=acme,dc=org", "acme"),
        ("bind as CN=Jane Doe,OU=R and D,DC=acme", "Jane"),
        ("subject=CN = hub.acme.example, O = Acme GmbH, L = Berlin", "Acme"),
        ("url = https://github.com/acme-private/train.git", "acme"),
        ("Default principal: jdoe/admin@ACME.ORG", "jdoe"),
        ("(jdoe-env) user@box:~$ ls", "jdoe"),
        ("ED25519 SHA256:uNiVztksCsDhcc0u9e8BgrJXVGLHhNjJCdXG7pHPtd0 key", "uNiVztks"),
        ("dapi0123456789abcdef0123456789abcdef", "0123456789"),
        ("bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawQ", "HdqTcvCH"),
        ('"private_key_id": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"', "0a1b2c"),
        ("psk=hunter2hunter2", "hunter2"),
        ("ECID 0x1234abcd5678", "1234abcd"),
        ("kubectl logs --namespace=team-secret x", "team-secret"),
        ('pod "train-jane-abc" in namespace "team-secret" is waiting', "jane"),
        ('pod "train-jane-abc" in namespace "team-secret" is waiting', "team-secret"),
        ("pod/train-jane-abc created", "jane"),
        ("failed to resolve source metadata for corp-registry:5000/team/secretproj:1.0", "secretproj"),
        ("failed to resolve source metadata for corp-registry:5000/team/secretproj:1.0", "corp-registry"),
        ("docker.io/jdoe/privateimage:tag", "jdoe"),
        ("fatal: repository 'acme/secret' not found", "acme"),
        ("opened /mnt/c/Users/Jane Doe/Desktop/x.csv", "Doe"),
        ("data: customers/acme-corp/bars.csv", "acme"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '../acme-corp/bars.csv'", "acme"),
        ("nfs01:/export/home/jdoe on /home/jdoe type nfs4 (rw)", "nfs01"),
    ],
)
def test_word_of_a_site_or_a_person_is_taken_out(text, gone):
    assert gone.lower() not in clean.clean(text, WHO).lower()


@pytest.mark.parametrize(
    "text",
    [
        "docker.io/rocm/pytorch:latest and ghcr.io/pytorch/x",
        "namespace at::native; a user space driver, for user defined kernels",
        "rocmatrix/runtime/trainer/errors.json, tests/golden/run/cpu.argv, requirements/base.txt",
        "scipy.io.loadmat, torch.nn.functional, config.h.in, self.net.layers.de_embed(x)",
        "git clone https://github.com/ROCm/rocm-libraries.git",
        "with c = 3, l = 2 and st = 4, o = 5",
        "srun -w 4, train -H, step 3 -w, hosts: 2",
        "(base) and (rank 3) failed; (gfx1100) has none",
        "error:/opt/rocm/lib/librocblas.so is missing",
        "amdgpu 0000:03:00.0: [gfxhub] page fault (src_id:0 ring:153 vmid:8 pasid:32795)",
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ],
)
def test_words_that_a_failure_is_read_from_stay(text):
    assert clean.clean(text, WHO) == text


@pytest.mark.parametrize(
    "unit",
    ["a/", "a.b", "x:1/", "-w a", "uid=a,", "namespace \"", "/Users/a b", "(a) ", "PBS_O=a ", "user ", "a.de", "n01:/x "],
)  # fmt: skip
def test_time_of_the_forms_grows_with_the_length(unit):
    def seconds(length):
        text, begun = unit * (length // len(unit)), time.process_time()
        for form, instead in (*BEFORE_PATHS, *AFTER_PATHS):
            form.sub(instead, text)
        return time.process_time() - begun

    seconds(1_000)
    assert seconds(40_000) < 40 * max(seconds(4_000), 0.005)
