"""NixOS: variables that a module sets to a text, each at its line."""

from rocmatrix.doctor.environment.files.machines import nixos


def test_variables_of_a_module_have_their_lines(tmp_path):
    path = tmp_path / "a.nix"
    path.write_text(
        '/* A_B = "0";\n*/\n{ A_B = "1"; "C_D" = "${e}"; x.F_G = "2"; # H_I = "3";\n rocmOverrideGfx = "9";}\n'
    )
    (found,) = nixos.of_nix(path)
    assert [(row.name, row.value, row.where.rpartition(":")[2]) for row in found.variables] == [
        ("A_B", "1", "3"), ("C_D", "${_e}", "3"), ("HSA_OVERRIDE_GFX_VERSION", "9", "4"),
    ]  # fmt: skip
