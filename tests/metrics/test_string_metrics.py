"""Edit distances as metrics and as scores of searches."""

import pytest

pytest.importorskip("rapidfuzz", reason="edit distances need the extra psilearn[strings]")

from psilearn.kernels import Substrings
from psilearn.metrics import edit_distance, edit_similarity
from psilearn.model_selection.scoring import as_scoring

TRUE, PREDICTED = ["kitten", "flaw", "abc"], ["sitting", "lawn", "abc"]


@pytest.mark.parametrize("form", [list, lambda words: [list(word) for word in words]])
def test_means_over_strings(form):
    assert edit_distance(form(TRUE), form(PREDICTED)).values.tolist() == [3, 2, 0]
    assert edit_similarity(form(TRUE), form(PREDICTED)).values.tolist() == pytest.approx([4 / 7, 0.5, 1])


def test_scorings():
    assert as_scoring("edit_distance").metric(TRUE, PREDICTED, Substrings()) == pytest.approx(-5 / 3)
    assert as_scoring("edit_similarity").metric(TRUE, PREDICTED, Substrings()) > 0


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="Y_true has 3 outputs, Y_pred has 1"):
        edit_distance(TRUE, PREDICTED[:1])
    with pytest.raises(ValueError, match=r"Y_pred\[0\] is an empty string"):
        edit_similarity(TRUE[:1], [""])
