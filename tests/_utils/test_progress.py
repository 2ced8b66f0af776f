"""Progress is shown only if it is requested and only for steps that take long."""

import re
from contextlib import contextmanager

import numpy as np
import pytest

from psilearn import OEL
from psilearn._utils.progress import observe_steps, show_progress, stage, step, track

RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 3)), RNG.random((60, 2))


@pytest.fixture
def show_all_steps(monkeypatch):
    monkeypatch.setattr("psilearn._utils.progress.MIN_SECONDS", -1.0)


def test_items_pass_through_unchanged(show_all_steps, capsys):
    assert list(track(range(5), "counting")) == list(range(5))
    assert capsys.readouterr() == ("", "")
    with show_progress(1):
        assert list(track(range(5), "counting", 5)) == list(range(5))
    out, err = capsys.readouterr()
    assert out == "" and "counting" in err and "5/5" in err


def test_short_steps_are_not_shown(capsys):
    with show_progress(1):
        list(track(range(5), "counting"))
        with stage("short"):
            pass
    assert capsys.readouterr() == ("", "")


def test_a_stage_shows_its_time(show_all_steps, capsys):
    with show_progress(1), stage("factor"):
        pass
    assert re.fullmatch(r"factor: \d+\.\d s\n", capsys.readouterr().err)


def test_nothing_is_shown_after_the_block(show_all_steps, capsys):
    with pytest.raises(ZeroDivisionError), show_progress(1):
        raise ZeroDivisionError
    list(track(range(5), "counting"))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("options", [{}, {"input_landmarks": 30, "output_landmarks": 20}], ids=["exact", "landmarks"])
def test_verbose_shows_the_steps_of_a_fit_and_of_a_search(show_all_steps, capsys, monkeypatch, options):
    monkeypatch.setattr("psilearn.decoding.bounded_search.PRODUCTS_PER_THREAD", 1)  # short searches have no bar
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


def test_a_progress_bar_inside_another_one_is_not_drawn(show_all_steps, capsys):
    with show_progress(1):
        for _ in track(range(2), "outer", 2):
            assert list(track(range(3), "inner", 3)) == [0, 1, 2]
        list(track(range(2), "after", 2))
    shown = capsys.readouterr().err
    assert "outer" in shown and "after" in shown and "inner" not in shown


def test_an_observer_sees_stages_and_steps_even_if_progress_is_shown(capsys):
    seen = []

    @contextmanager
    def observe(description):
        seen.append(f"start {description}")
        yield
        seen.append(f"end {description}")

    with observe_steps(observe), show_progress(True), stage("a"), step("b"):
        pass
    with stage("c"), step("d"):
        pass
    assert seen == ["start a", "start b", "end b", "end a"]
    assert capsys.readouterr().err == ""
