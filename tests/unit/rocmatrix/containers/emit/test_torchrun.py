"""torchrun's own words around the trainer's."""

import argparse

from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers.emit.torchrun import ALONE, torchrun


@given(st.lists(st.text(min_size=1, max_size=8), max_size=4))
def test_trainers_arguments_stand_behind_a_word_that_ends_torchruns_own(arguments):
    words = torchrun(*ALONE, "--nproc-per-node=2", arguments=arguments)
    assert words[:2] == ["-m", "torch.distributed.run"]
    parser = argparse.ArgumentParser(allow_abbrev=True)  # torchrun's own reading: options, then the program
    for option in ("--local-addr", "--nproc-per-node", "--run-path"):
        parser.add_argument(option)
    for flag in ("--standalone", "-m"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("program")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    read = parser.parse_args(words[2:])
    assert (read.program, read.rest, read.m, read.run_path) == ("trainer", arguments, True, None)
