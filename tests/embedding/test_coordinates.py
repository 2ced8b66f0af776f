import numpy as np
import pytest

from psilearn._backend import to_numpy
from psilearn._linalg import NotPositiveSemidefiniteError
from psilearn._utils.samples import concat, n_samples, take
from psilearn.embedding import KnownOutputs, OutputCoordinates
from psilearn.kernels import Kernel, Linear
from tests.problems import block

pytestmark = pytest.mark.usefixtures("backend")


def test_coordinates_reproduce_the_kernel(problem):
    psi = OutputCoordinates(problem.kernel, problem.Y)
    values = to_numpy(psi.values)
    np.testing.assert_allclose(values @ values.T, block(problem.kernel, problem.Y), atol=1e-9)
    np.testing.assert_allclose(to_numpy(psi.embedding()(problem.Y)), values, atol=1e-8)


def test_landmarks_are_as_many_as_the_rank(problem):
    psi = OutputCoordinates(problem.kernel, problem.Y)
    K = block(problem.kernel, problem.Y)
    assert n_samples(psi.landmarks) == psi.rank == np.linalg.matrix_rank(K, hermitian=True)


def test_coordinates_of_a_linear_kernel_are_a_rotation_of_the_vectors():
    Y = np.random.default_rng(0).standard_normal((30, 4))
    psi = OutputCoordinates(Linear(), Y)
    new = np.random.default_rng(1).standard_normal((9, 4))
    assert psi.rank == 4
    g, g_new = (to_numpy(psi.embedding()(rows)) for rows in (Y, new))
    np.testing.assert_allclose(g_new @ g.T, new @ Y.T, atol=1e-10)


def test_embedding_beyond_the_span_is_the_projection():
    # The span of the given outputs is the plane z = 0.
    Y = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [0.5, -1.0, 0.0]])
    g = OutputCoordinates(Linear(), Y).embedding()(np.array([[3.0, 4.0, 12.0]]))
    assert float((g**2).sum()) == pytest.approx(25.0)


def test_known_outputs_put_labeled_ones_first_and_count_the_unlabeled(problem):
    known = KnownOutputs.of(problem.Y, problem.unlabeled)
    everything = concat([problem.Y, problem.unlabeled])
    # every labeled output is found again under its index
    np.testing.assert_allclose(
        problem.kernel.paired_squared_distances(take(known.outputs, known.labeled), problem.Y), 0, atol=1e-12
    )
    assert known.labeled.max() == known.n_labeled - 1
    assert n_samples(known.outputs) <= n_samples(everything)
    assert known.frequencies.sum() == pytest.approx(1)
    # Σ frequencies ψ = the mean of ψ over the unlabeled outputs
    mean = block(problem.kernel, problem.candidates, problem.unlabeled).mean(axis=1)
    K = block(problem.kernel, problem.candidates, known.outputs)
    np.testing.assert_allclose(K @ known.frequencies, mean, atol=1e-12)


def test_labeled_outputs_serve_where_none_are_unlabeled(problem):
    known = KnownOutputs.of(problem.Y, None)
    np.testing.assert_allclose(known.frequencies, np.bincount(known.labeled) / len(known.labeled))


def test_indefinite_output_kernel_is_named():
    class Indefinite(Kernel):
        def _block(self, A, B, compute):
            return -Linear()(A, B)

        def _diag(self, A):
            return -Linear().diag(A)

    with pytest.raises(NotPositiveSemidefiniteError, match=r"output_kernel = Indefinite\(\) is not positive semi"):
        OutputCoordinates(Indefinite(), np.array([[1.0], [2.0]]))
