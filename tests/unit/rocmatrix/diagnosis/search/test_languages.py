"""Messages of the system in other languages, as signatures read them."""

import json
from pathlib import Path

import pytest

from rocmatrix.diagnosis.search import languages

TABLE: dict[str, list[str]] = json.loads(
    Path(languages.__file__).with_name("languages.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("printed", "english"),
    [
        (
            "libamdhip64.so.6: Kann die Shared-Object-Datei nicht öffnen: Datei oder Verzeichnis nicht gefunden",
            "libamdhip64.so.6: cannot open shared object file: No such file or directory",
        ),
        ("E: 无法定位软件包 rocm-hip-sdk", "E: Unable to locate package rocm-hip-sdk"),
        ("bash: rocminfo : commande introuvable", "bash: rocminfo : command not found"),
        ("E: Paket rocm kann nicht gefunden werden.", "E: Unable to locate package rocm."),
        ("fichero /dev/kfd: Permiso denegado", "fichero /dev/kfd: Permission denied"),
    ],
)
def test_message_of_another_language_becomes_english(printed: str, english: str) -> None:
    assert languages.english(printed.encode()).decode() == english


def test_text_without_such_messages_is_the_same_object() -> None:
    text = "Résumé: 3 épochs, loss 0.1\nPermission denied\n".encode()
    assert languages.english(text) is text


def test_text_beyond_the_bound_is_left_as_it_is() -> None:
    text = b"Keine Berechtigung\n" * (languages.MOST // 10)
    assert languages.english(text) is text


def test_lines_keep_their_number_for_every_message() -> None:
    for rows in TABLE.values():
        for local in rows:
            text = f"a\n{local.replace('{}', 'name')}\nb\n".encode()
            assert languages.english(text).count(b"\n") == text.count(b"\n"), local


def test_message_of_the_table_is_translated_into_its_own_text() -> None:
    wrong = [
        (local, text)
        for text, rows in TABLE.items()
        for local in rows
        if languages.english(local.replace("{}", "name").encode()).decode() != text.replace("{}", "name")
    ]
    assert wrong == []


def test_short_plain_word_is_no_message() -> None:
    """It may stand in English text: the French for aborted is a part of abandoned."""
    plain = [local for rows in TABLE.values() for local in rows if local.isascii() and " " not in local]
    assert all(len(local) > 14 for local in plain)
