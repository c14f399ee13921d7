"""Parts are bounded, and packed to the same bytes each time."""

from rocmatrix.evidence.bundle import archive, contents


def test_bounded_leaves_out_a_part_that_does_not_fit():
    parts = [contents.Part(name=str(n), text="x" * 60) for n in range(3)]
    kept, left_out = archive.bounded([*parts, contents.Part(name="small", text="x")], most=130)
    assert [part.name for part in kept] == ["0", "1", "small"]
    assert [part.name for part in left_out] == ["2"]
