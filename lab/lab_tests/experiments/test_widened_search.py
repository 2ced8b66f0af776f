"""Grids of the searches are extended until no best setting is at an end."""

from types import SimpleNamespace

import numpy as np
import pytest

from lab_tests.experiments.test_paper_experiments import tags
from psilearn import OEL, OELCV
from psilearn.kernels import Gaussian
from psilearn_lab.experiments.widening import Line, WidenedSearch


def bowls(centers, rank=40):
    """Return a stand-in for a search, with one score per center (log2 γ, log10 λ, log2 p), and its calls."""
    calls = []

    def run(values):
        calls.append(values)
        kernel = Gaussian(1.0)
        params = [
            {"input_kernel": Gaussian(gamma), "output_kernel": kernel, "alpha": alpha, "n_components": p}
            for gamma in values["gamma"]
            for alpha in values["alpha"]
            for p in values["n_components"]
        ]
        places = np.array(
            [[np.log2(q["input_kernel"].gamma), np.log10(q["alpha"]), np.log2(q["n_components"])] for q in params]
        )
        scores = {f"mean_test_{name}": -np.abs(places - center).sum(axis=1) for name, center in centers.items()}
        return SimpleNamespace(
            ranks_=[rank], grid_={"output_kernel": [kernel]}, cv_results_={"params": params, **scores}
        )

    return run, calls


FIRST = {"gamma": [0.25, 0.5, 1.0], "alpha": [1e-4, 1e-3], "n_components": [8, 16]}


def test_every_line_reaches_its_best_setting():
    run, calls = bowls({"mse": (-5, -7, 2), "f1": (3, -2, 4)})
    search = WidenedSearch(run, FIRST, [Line("mse", {}), Line("f1", {})], max_rounds=6).fit()
    for line, (gamma, alpha, p) in zip(search.lines, [(2**-5, 1e-7, 4), (8, 1e-2, 16)], strict=True):
        best = search.best(line)
        assert best["input_kernel"].gamma == pytest.approx(gamma) and best["alpha"] == pytest.approx(alpha)
        assert best["n_components"] == p and search.edges(line) == []
    settings = [(g, a, p) for call in calls for g in call["gamma"] for a in call["alpha"] for p in call["n_components"]]
    assert len(set(settings)) == len(settings) == np.prod([len(values) for values in search.values.values()])


def test_p_is_from_one_to_the_rank():
    for center, expected in (((0, -3.5, 9), 40), ((0, -3.5, -3), 1)):
        run, _ = bowls({"f1": center})
        search = WidenedSearch(run, {**FIRST, "gamma": [1.0]}, [Line("f1", {})], max_rounds=9).fit()
        assert search.best(search.lines[0])["n_components"] == expected and search.edges(search.lines[0]) == []
        assert search.values["gamma"] == [1.0]


def test_edges_that_remain_are_named():
    run, calls = bowls({"f1": (-2, -12, 3)})
    search = WidenedSearch(
        run, {**FIRST, "gamma": [0.125, 0.25, 0.5], "n_components": [4, 8, 16]}, [Line("f1", {})], 2
    ).fit()
    assert search.edges(search.lines[0]) == ["alpha = 1e-08 is the smallest of its grid"] and len(calls) == 3
    assert calls[1]["alpha"] == pytest.approx([1e-6, 1e-5]) and calls[1]["gamma"] == [0.125, 0.25, 0.5]


def test_it_chooses_what_one_search_of_the_final_grid_chooses():
    bunch = tags()
    X, Y = bunch.X[:100] / 10, bunch.Y[:100]

    def run(values):
        kernels = [Gaussian(gamma) for gamma in values["gamma"]]
        axes = {"alphas": values["alpha"], "n_components": values["n_components"], "supervisions": [1.0]}
        return OELCV(kernels, Gaussian(0.2), **axes, cv=2, scoring=["f1"], refit=False).fit(X, Y)

    with pytest.warns(UserWarning, match="is the"):
        search = WidenedSearch(
            run, {"gamma": [0.5, 1.0], "alpha": [1e-1, 1.0], "n_components": [2, 4]}, [Line("f1", {})], 3
        )
        best, whole = search.fit().best(search.lines[0]), run(search.values).best_where("f1")
    assert len(search.values["alpha"]) > 2
    assert OEL(**best).get_params().keys() == OEL(**whole.params).get_params().keys() and repr(best) == repr(
        whole.params
    )
