"""Solutions in panels are those of a substitution."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from psilearn._linalg import panel_solutions, solve_both  # noqa: E402


@pytest.mark.parametrize("n", [1, 64, 100, 333])
def test_panels_solve_the_triangular_systems(n, monkeypatch):
    monkeypatch.setattr(panel_solutions, "PANEL", 100)
    rng = np.random.default_rng(n)
    rows = torch.from_numpy(rng.standard_normal((n, n + 20)))
    L = torch.linalg.cholesky(rows @ rows.T / n + 0.1 * torch.eye(n))
    B = torch.from_numpy(rng.standard_normal((n, 7)))
    given = B.clone()
    half, whole = panel_solutions.solve_twice(L, B)
    torch.testing.assert_close(B, given)
    torch.testing.assert_close(half, torch.linalg.solve_triangular(L, B, upper=False))
    torch.testing.assert_close(whole, torch.cholesky_solve(B, L))
    for array in (L, L.numpy()):
        expected = solve_both(array, B.clone() if array is L else np.asfortranarray(B.numpy()))
        np.testing.assert_allclose(np.asarray(expected[0]), half, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(np.asarray(expected[1]), whole, rtol=1e-9, atol=1e-11)


def test_inverses_of_triangles_of_different_sizes():
    rng = np.random.default_rng(0)
    triangles = [torch.from_numpy(np.tril(rng.standard_normal((n, n)) / n, -1) + np.eye(n)) for n in (3, 64, 150)]
    for L, inverse in zip(triangles, panel_solutions.invert_triangles(triangles), strict=True):
        torch.testing.assert_close(L @ inverse, torch.eye(len(L), dtype=L.dtype))


def test_only_large_triangles_on_a_gpu_are_solved_in_panels():
    assert not panel_solutions.uses_panels(torch.eye(5000, dtype=torch.float64))
