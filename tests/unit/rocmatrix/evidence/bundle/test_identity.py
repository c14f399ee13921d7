"""Names and secrets of this machine are those of a person, and long enough."""

import pwd
import socket

import pytest

from rocmatrix.evidence.bundle.identity import here


def test_identity_leaves_out_generic_accounts_and_short_secrets(tmp_path):
    environment = {
        "HOME": "/home/ubuntu",
        "USER": "ubuntu",
        "HOSTNAME": "deep7.lab",
        "MY_TOKEN": "abc",
        "API_KEY": "abcdefgh",
    }
    found = here(environment, root=tmp_path)
    assert "ubuntu" not in found.names
    assert "deep7.lab" in found.names
    assert found.secrets == ("abcdefgh",)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("XAUTHORITY", False), ("SSH_AUTH_SOCK", False), ("GIT_AUTHOR_NAME", False), ("TOKENIZERS_CACHE", False),
        ("HTTP_AUTHORIZATION", True), ("MY_AUTH", True), ("REGISTRY_AUTH_FILE", True), ("HF_TOKEN", True),
    ],
)  # fmt: skip
def test_secret_is_known_by_the_name_of_its_variable(tmp_path, name, secret):
    assert here({"HOME": "/", name: "/run/user/1000/value"}, root=tmp_path).secrets == (
        ("/run/user/1000/value",) if secret else ()
    )


def test_domain_of_the_host_and_the_users_full_name_are_names(tmp_path, monkeypatch):
    account = pwd.struct_passwd(("kb", "x", 1000, 1000, "Karla Baum,Room 7,,", "/home/kb", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: account)
    monkeypatch.setattr(socket, "getfqdn", lambda: "deep7.acme-lab.org")
    found = here({"HOME": "/"}, root=tmp_path).names
    assert {"deep7.acme-lab.org", "deep7", "acme-lab.org", "Karla Baum"} <= set(found)


@pytest.mark.parametrize("gecos", ["", "root", "Debian,,,"])
def test_single_word_of_an_account_is_no_name_of_a_person(tmp_path, monkeypatch, gecos):
    account = pwd.struct_passwd(("kb", "x", 1000, 1000, gecos, "/home/kb", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: account)
    assert not {"root", "Debian", gecos} & set(here({"HOME": "/"}, root=tmp_path).names)
