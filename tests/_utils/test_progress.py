"""Progress appears where it is asked for and where something takes a while, and nowhere else."""

import numpy as np
import pytest

from psilearn import OEL
from psilearn._utils.progress import reporting, stage, track

RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 3)), RNG.random((60, 2))


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("psilearn._utils.progress.PATIENCE", -1.0)


def test_items_pass_through_unchanged(impatient, capsys):
    assert list(track(range(5), "counting")) == list(range(5))
    assert capsys.readouterr() == ("", "")
    with reporting(1):
        assert list(track(range(5), "counting", 5)) == list(range(5))
    out, err = capsys.readouterr()
    assert out == "" and "counting" in err and "5/5" in err


def test_short_steps_are_not_mentioned(capsys):
    with reporting(1):
        list(track(range(5), "counting"))
        with stage("a moment"):
            pass
    assert capsys.readouterr() == ("", "")


def test_a_stage_says_how_long_it_took(impatient, capsys):
    with reporting(1), stage("factor"):
        pass
    assert "factor: 0.0 s" in capsys.readouterr().err


def test_reporting_ends_with_its_block(impatient, capsys):
    with pytest.raises(ZeroDivisionError), reporting(1):
        raise ZeroDivisionError
    list(track(range(5), "counting"))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("options", [{}, {"input_landmarks": 30, "output_landmarks": 20}], ids=["exact", "landmarks"])
def test_verbose_shows_the_steps_of_a_fit_and_of_a_search(impatient, capsys, options):
    quiet = OEL(n_components=3, **options).fit(X, Y, unlabeled=iter([Y[:9], Y[9:20]])).predict(X)
    assert capsys.readouterr() == ("", "")
    model = OEL(n_components=3, verbose=1, **options).fit(X, Y, unlabeled=iter([Y[:9], Y[9:20]]))
    shown = capsys.readouterr().err
    steps = (
        ["inputs", "outputs"]
        if not options
        else ["30 input landmarks", "20 output landmarks", "regression", "unlabeled"]
    )
    assert all(step in shown for step in [*steps, "3 leading directions"])
    np.testing.assert_array_equal(model.predict(X), quiet)
    assert "search of candidates" in capsys.readouterr().err
    model.candidate_set(Y)
    assert "embedding of outputs" in capsys.readouterr().err


def test_a_bar_inside_a_bar_is_not_drawn(impatient, capsys):
    with reporting(1):
        for _ in track(range(2), "outer", 2):
            assert list(track(range(3), "inner", 3)) == [0, 1, 2]
        list(track(range(2), "after", 2))
    told = capsys.readouterr().err
    assert "outer" in told and "after" in told and "inner" not in told
