"""The table of architectures that the trainer reads, by name."""

import json

from trainer.device import architectures


def test_row_is_found_by_its_name_and_a_later_one_replaces_it(tmp_path, monkeypatch):
    file = tmp_path / "architectures.json"
    file.write_text(json.dumps([{"name": "gfx1", "peaks": []}, {"name": "gfx2"}, {"name": "gfx1", "peaks": [1]}]))
    monkeypatch.setattr(architectures, "ARCHITECTURES", file)
    assert architectures._read() == {"gfx1": {"name": "gfx1", "peaks": [1]}, "gfx2": {"name": "gfx2"}}


def test_rows_of_the_rendered_table_have_names_of_their_own():
    rows = json.loads(architectures.ARCHITECTURES.read_text())
    assert [row["name"] for row in rows] == list(architectures.KNOWN)
    assert all(row.keys() >= {"autocast", "per_clock", "peaks"} for row in rows)
