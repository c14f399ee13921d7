"""What a follower returns: new whole lines, and the rest of a line apart."""

from rocmatrix.diagnosis.intake.follow import Follower


def test_follower_returns_whole_lines_and_keeps_the_rest(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("one\ntw")
    follower = Follower(path)
    assert (follower.read(), follower.partial) == (b"one\n", b"tw")
    path.write_text("one\ntwo\n")
    assert (follower.read(), follower.partial, follower.restarts) == (b"two\n", b"", 0)
    path.write_text("new\n")
    assert (follower.read(), follower.restarts) == (b"new\n", 1)
    follower.close()
