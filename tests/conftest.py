"""What all tests rely on."""

import atexit
import os
import shutil
import signal
import tempfile

from hypothesis import settings

from tests.groups import pytest_collection_modifyitems, pytest_xdist_make_scheduler  # noqa: F401 - hooks
from tests.left_out import WHOLE, examples
from tests.times import pytest_terminal_summary  # noqa: F401 - a hook

# A program started in the background inherits an ignored SIGINT, and so do its children: the tests that
# interrupt a build or a run would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored

# How long an example takes says more about what else the machine does than about the code. A change is judged by the
# same examples each time; the night, which nobody waits for, looks for others, and for more of them.
settings.register_profile("rocmatrix", deadline=None, derandomize=not WHOLE, max_examples=examples(100))
settings.load_profile("rocmatrix")

# What tests run is no evidence of this machine's: it goes into a file of their own, and away with it.
_evidence = tempfile.mkdtemp(prefix="rocmatrix-test-evidence-")
os.environ["ROCMATRIX_EVIDENCE"] = f"{_evidence}/evidence.db"
atexit.register(shutil.rmtree, _evidence, ignore_errors=True)
