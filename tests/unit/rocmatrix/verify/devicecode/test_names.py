"""Names as genuine packages have them: Debian's rocBLAS and hipBLASLt, MIOpen's sources, torch's wheels."""

import pytest

from rocmatrix.verify.devicecode.names import target_of


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/usr/lib/x/rocblas/5/library/Kernels.so-000-gfx90a-xnack+.hsaco", "gfx90a:xnack+"),
        ("/usr/lib/x/rocblas/5/library/TensileLibrary_lazy_gfx1100.dat", "gfx1100"),
        ("/x/rocblas/library/TensileLibrary_Type_HH_HPA_Contraction_l_Ailk_Bljk_Cijk_Dijk_CU104_gfx90a.dat", "gfx90a"),
        ("/x/rocblas/library/TensileLibrary_Type_ZZ_Contraction_l_Alik_Bljk_Cijk_Dijk_fallback_gfx908.hsaco", "gfx908"),
        ("/x/hipblaslt/library/extop_gfx942.co", "gfx942"),
        ("/x/hipblaslt/library/gfx1250-strict/TensileLibrary_fallback.dat", "gfx1250-strict"),
        ("/x/hipsparselt/library/TensileLibrary_lazy_gfx950.dat", "gfx950"),
        (
            "/x/torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/FONLY__^bf16@16_256___gfx11xx.aks2",
            "gfx11xx",
        ),
        ("/x/torch/lib/aotriton.images/amd-gfx90a/__signature__", "gfx90a"),
        ("/x/share/miopen/db/gfx906_60.HIP.fdb.txt", "gfx906"),
        ("/x/share/miopen/db/gfx90878.db", "gfx908"),
        ("/x/share/miopen/db/gfx90a6e.HIP.fdb.txt", "gfx90a"),
        ("/x/share/miopen/db/gfx942130.db.txt", "gfx942"),
        ("/x/share/miopen/db/gfx110060.db.txt", "gfx1100"),
        ("/x/share/miopen/db/gfx942_ConvHipIgemmGroupFwdXdlops_metadata.ktn.model", "gfx942"),
        ("/x/share/miopen/db/gfx1030.kdb", "gfx1030"),
    ],
)
def test_file_name_gives_the_target(path, target):
    assert str(target_of(path)) == target


@pytest.mark.parametrize(
    "path",
    [
        "/x/rocblas/library/TensileLibrary_Type_CC_Contraction_l_Ailk_BjlkC_Cijk_Dijk_fallback.dat",
        "/x/rocblas/library/TensileLibrary.dat",
        "/x/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat",
        "/x/hipblaslt/library/hipblasltTransform.hsaco",
        "/x/share/miopen/db/unknown.model",
        "/x/share/miopen/db/gfx9_something_new",
        "/x/aotriton.images/README",
        "/x/somewhere/else_gfx1100.co",
        "/x/torch/lib/librocblas.so",
    ],
)
def test_files_for_all_and_other_files_have_no_processor(path):
    assert target_of(path) is None
