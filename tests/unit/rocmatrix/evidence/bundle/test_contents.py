"""Parts of a bundle are cut to their bounds at the starts of lines."""

from rocmatrix.evidence.bundle import contents
from rocmatrix.evidence.bundle.identity import Identity


def test_log_that_was_cut_in_a_token_shows_no_half_of_it(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("hf_" + "q" * (4 * contents.TAIL_BYTES) + "\nthe end\n")
    assert contents.log(log, Identity()).text == "[the beginning is left out]\nthe end\n"
