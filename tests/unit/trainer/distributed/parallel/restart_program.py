"""A rank that ends itself in the first attempt; in the second, rank 0 comes late to a store that torchrun kept."""

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

from trainer.distributed.parallel.join import connect

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if attempt == 1 and os.environ["RANK"] == "0":
    time.sleep(2)
ranks = connect()
assert ranks.gather(ranks.rank) == [0, 1]
Path(sys.argv[1], f"attempt{attempt}-rank{ranks.rank}").touch()
ranks.barrier()
if attempt == 0:
    os.kill(os.getpid(), signal.SIGKILL)
ranks.close()
