"""Solutions in panels are those of a substitution."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from psilearn._linalg import solve_both, solve_transposed, torch_triangles  # noqa: E402


@pytest.mark.parametrize("n", [1, 64, 100, 333])
def test_panels_solve_the_triangular_systems(n, monkeypatch):
    monkeypatch.setattr(torch_triangles, "PANEL", 100)
    rng = np.random.default_rng(n)
    rows = torch.from_numpy(rng.standard_normal((n, n + 20)))
    L = torch.linalg.cholesky(rows @ rows.T / n + 0.1 * torch.eye(n))
    B = torch.from_numpy(rng.standard_normal((n, 7)))
    given = B.clone()
    half, whole = torch_triangles.solve_twice(L, B)
    torch.testing.assert_close(B, given)
    torch.testing.assert_close(half, torch.linalg.solve_triangular(L, B, upper=False))
    torch.testing.assert_close(whole, torch.cholesky_solve(B, L))
    torch.testing.assert_close(torch_triangles.solve_transposed(L, half), whole)
    monkeypatch.setattr(torch_triangles, "uses_panels", lambda L: True)
    torch.testing.assert_close(solve_transposed(L, half), whole)
    for array in (L, L.numpy()):
        expected = solve_both(array, B.clone() if array is L else np.asfortranarray(B.numpy()))
        np.testing.assert_allclose(np.asarray(expected[0]), half, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(np.asarray(expected[1]), whole, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [1, 3, 64, 128, 150])
@pytest.mark.parametrize("order", ["C", "F"])
def test_inverses_of_diagonal_blocks_have_zeros_around_them(n, order):
    rng = np.random.default_rng(n)
    values = np.tril(rng.standard_normal((n, n)) / n, -1) + np.diag(rng.uniform(0.5, 2, n))
    L = torch.from_numpy(np.array(values, order=order))
    for size in (50, 64, 1000):
        inverses = torch_triangles.invert_diagonal_blocks(L, size)
        starts = range(0, n, size)
        assert len(inverses) == len(starts)
        for start, inverse in zip(starts, inverses, strict=True):
            block = L[start : start + size, start : start + size]
            inside = inverse[: len(block), : len(block)].clone()
            torch.testing.assert_close(block @ inside, torch.eye(len(block), dtype=L.dtype))
            inverse[: len(block), : len(block)] = 0
            assert not inverse.any()


def test_only_large_triangles_on_a_gpu_are_solved_in_panels():
    assert not torch_triangles.uses_panels(torch.eye(5000, dtype=torch.float64))
