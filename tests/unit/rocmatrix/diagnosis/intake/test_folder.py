"""Which files of a folder are logs, in which order, and what is reported of those that cannot be read."""

import gzip
import os

import pytest

from rocmatrix.diagnosis import answer, diagnosis, log_reader
from rocmatrix.diagnosis.intake import folder
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.runtime.errors import RocmatrixError
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

FAULT = "RuntimeError: HIP error: invalid device function\n"
CANCELLED = "slurmstepd: error: *** JOB 42 ON node7 CANCELLED AT 2026-11-22T10:00:00 ***\n"


def put(path, text, *, age=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


def diagnosed(root):
    logs = folder.logs(root)
    rows = ((logs.name(path), log_reader.chunks(path.open("rb"), name=str(path))) for path in logs.paths)
    return diagnosis.diagnose_all(rows, name="folder", signatures=SIGNATURES, here=HostContext())


@pytest.mark.parametrize(
    "name", ["a.log", "a.log.1", "a.log.2.gz", "a.log-20261122", "slurm-42.out", "x.err", "dmesg", "kern.log.1.xz",
             "A.LOG", "syslog.1", "events.jsonl", "report.txt", "a.log.old", "A.LOG.GZ", "job.o123", "run.e123",
             "run.sh.o42", "run.sh.o42.7.gz", "job.po9", "a.log.OLD"]
)  # fmt: skip
def test_name_of_a_log_is_one(name):
    assert folder.is_log_name(name)


@pytest.mark.parametrize(
    "name", ["train.py", "README.md", "README", "config.json", "requirements.txt", "requirements-dev.txt",
             "CMakeLists.txt", "model.safetensors", "a.tar.gz", "Dockerfile", "x.yaml", "merges.txt", "tokenizer.json",
             "train.py.o", "lib.o", "a.o123.py"]
)  # fmt: skip
def test_name_of_a_source_or_document_is_no_log(name):
    assert not folder.is_log_name(name)


def test_logs_come_oldest_first_and_the_cause_of_one_leads_another(tmp_path):
    put(tmp_path / "b" / "slurm-42.out", CANCELLED)
    put(tmp_path / "a" / "train.log.1.gz", gzip.compress(b"step 1\n" + FAULT.encode()), age=60)
    put(tmp_path / "train.py", f"raise {FAULT}")
    put(tmp_path / "weights.out", b"\0" * 100)
    found = diagnosed(tmp_path)
    assert [path.name for path in folder.logs(tmp_path).paths] == ["train.log.1.gz", "slurm-42.out"]
    assert (found.best.signature.id, found.best.where) == ("hip-invalid-device-function", "a/train.log.1.gz line 2")
    assert found.lines == 3
    assert "(b/slurm-42.out line 1)" in "\n".join(answer.text_lines(found))


def test_match_across_two_logs_is_none(tmp_path):
    put(tmp_path / "1.log", "the words: Torch not compiled with CU", age=9)
    put(tmp_path / "2.log", "DA enabled\n")
    assert diagnosed(tmp_path).best is None


def test_earlier_log_wins_among_equals(tmp_path):
    put(tmp_path / "z.log", "x\n" * 9 + FAULT, age=60)
    put(tmp_path / "a.log", FAULT)
    assert diagnosed(tmp_path).best.where == "z.log line 10"
    assert diagnosed(tmp_path).best.count == 2


def test_damaged_log_is_named_and_the_others_are_read(tmp_path):
    put(tmp_path / "a.log.gz", b"\x1f\x8b broken", age=9)
    put(tmp_path / "b.log", FAULT)
    found = diagnosed(tmp_path)
    assert found.best is not None
    assert found.left_out[0].startswith("a.log.gz: not sound gzip")
    assert "unread: a.log.gz" in "\n".join(answer.text_lines(found))


def test_links_that_lead_around_are_read_once(tmp_path):
    log = put(tmp_path / "a" / "a.log", FAULT)
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    (tmp_path / "same.log").symlink_to(log)
    (tmp_path / "dead.log").symlink_to(tmp_path / "none.log")
    assert diagnosed(tmp_path).best.count == 1


def test_folder_without_a_log_is_refused(tmp_path):
    put(tmp_path / "train.py", FAULT)
    with pytest.raises(RocmatrixError, match="RM610"):
        folder.logs(tmp_path)
