"""Names and secrets of this machine are those of a person, and long enough."""

from rocmatrix.evidence.bundle.identity import here


def test_identity_leaves_out_generic_accounts_and_short_secrets(tmp_path):
    told = {"HOME": "/home/ubuntu", "USER": "ubuntu", "HOSTNAME": "deep7.lab", "MY_TOKEN": "abc", "API_KEY": "abcdefgh"}
    found = here(told, root=tmp_path)
    assert "ubuntu" not in found.names
    assert "deep7.lab" in found.names
    assert found.secrets == ("abcdefgh",)
