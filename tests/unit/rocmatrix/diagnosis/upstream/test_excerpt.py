"""Which lines a report quotes."""

from rocmatrix.diagnosis.upstream import excerpt


def test_excerpt_is_around_the_line_the_first_error_or_the_end():
    log = [b"".join(b"step %d\n" % number for number in range(1, 50)), b"Error: x\nlast\n"]
    assert excerpt.excerpt(log, 20).first == 8
    assert excerpt.excerpt(log, None).quoted[-2:] == ("Error: x", "last")
    assert excerpt.excerpt(log[:1], None).quoted[-1] == "step 49"
