"""The tables and the report of rankings."""

import csv
import io
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from psilearn_chem.metabolites import Query, rank_report
from psilearn_chem.metabolites.mztab import format_mztab
from psilearn_chem.metabolites.rank_files import RankFiles, format_table, write_rankings
from psilearn_chem.metabolites.rank_report import find_support
from psilearn_chem.spectra import Problem, Spectrum


def with_fields(spectrum, number):
    fields = {"feature_id": f"F{number}", "retention_time": str(10.0 * number)}
    return replace(spectrum, metadata=fields, smiles=None)


@pytest.fixture(scope="module")
def rankings(identifier, spectra, library):
    queries = [with_fields(spectrum, number) for number, spectrum in enumerate(spectra[:7], 1)]
    return list(identifier.rank(queries, library, k=3))


def write(rankings, library, folder, problems=(), **files):
    files = RankFiles(folder / "r.csv", **{name: folder / value for name, value in files.items()})
    files.check()
    found = list(problems)
    n_ranked = write_rankings(iter(rankings), library, files, 0.9, found)
    return n_ranked, found


def test_the_table_is_that_of_the_whole_list(rankings, library, tmp_path):
    problem = Problem("x", "y")
    assert write([rankings[0], problem, *rankings[1:]], library, tmp_path) == (7, [problem])
    text = (tmp_path / "r.csv").read_bytes().decode()
    assert text == format_table(rankings, library)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == sum(len(ranking.rows) for ranking in rankings)
    first, spectrum = rows[0], rankings[0].spectrum
    assert (first["feature_id"], first["retention_time"], first["adduct"]) == ("F1", "10", "[M+H]+")
    assert float(first["precursor_mz"]) == pytest.approx(spectrum.precursor_mz, abs=1e-6)
    from rdkit import Chem

    assert [row["inchikey"] for row in rows] == [Chem.MolToInchiKey(Chem.MolFromSmiles(row["smiles"])) for row in rows]
    p_values = np.concatenate([ranking.p_values for ranking in rankings])
    np.testing.assert_allclose([float(row["p_value"]) for row in rows], p_values, atol=1e-6)


def test_the_table_of_sirius_has_the_same_molecules(rankings, library, tmp_path):
    name = "a name\twith a tab"
    named = [replace(ranking, spectrum=replace(ranking.spectrum, name=name)) for ranking in rankings]
    write(named, library, tmp_path, tsv="r.tsv")
    table = list(csv.DictReader((tmp_path / "r.csv").open(newline="")))
    rows = list(csv.DictReader((tmp_path / "r.tsv").open(newline=""), delimiter="\t"))
    for ours, theirs in zip(table, rows, strict=True):
        assert theirs["smiles"] == ours["smiles"] and theirs["InChIkey2D"] == ours["inchikey"][:14]
        assert theirs["mappingFeatureId"] == ours["feature_id"] and theirs["psilearnSpectrum"] == "a name with a tab"
        assert theirs["InChI"].startswith("InChI=1S/") and theirs["psilearnDistance"] == ours["distance"]
        assert (theirs["psilearnInSet"] == "true") == (ours["in_set"] == "yes")
    assert [row["structurePerIdRank"] for row in rows] == [str(i + 1) for r in rankings for i in range(len(r.rows))]


def test_the_mztab_file_is_that_of_the_whole_list(rankings, library, tmp_path):
    write(rankings, library, tmp_path, mztab="r.mztab")
    assert (tmp_path / "r.mztab").read_bytes().decode() == format_mztab(rankings, library)


def test_rankings_contain_the_whole_conformal_set(identifier, spectra, library):
    everything = list(identifier.rank(spectra[:20], library, k=None, coverage=0.99))
    cut = list(identifier.rank(iter(spectra[:20]), library, k=1, coverage=0.99, whole_set=True))
    assert any(ranking.set_size > 1 for ranking in cut)
    for full, ranking in zip(everything, cut, strict=True):
        count = min(max(1, full.set_size), full.n_candidates)
        assert len(ranking.rows) == count and ranking.in_set.sum() == full.set_size
        for name in ("rows", "distances", "margins", "ranks", "p_values"):
            np.testing.assert_array_equal(getattr(ranking, name), getattr(full, name)[:count])


def test_an_iterator_is_read_in_batches(identifier, spectra, library, monkeypatch):
    monkeypatch.setattr("psilearn_chem.metabolites.ranking.MAX_BATCH", 4)
    expected = [ranking.rows.tolist() for ranking in identifier.rank(spectra[:10], library)]
    taken = []

    def stream():
        for spectrum in spectra[:10]:
            taken.append(spectrum)
            yield spectrum

    results = identifier.rank(stream(), library)
    assert next(results).rows.tolist() == expected[0] and len(taken) == 4
    assert [ranking.rows.tolist() for ranking in results] == expected[1:]
    with pytest.raises(TypeError, match="spectra must be a list or an iterator"):
        list(identifier.rank(iter([spectra[0], "x"]), library))


def links(page):
    return [unescape(link) for link in re.findall(r'href="([^"]*)"', page.read_text(encoding="utf-8"))]


def test_a_long_report_has_an_index_by_confidence_and_pages(rankings, library, tmp_path, monkeypatch):
    monkeypatch.setattr(rank_report, "SPECTRA_PER_PAGE", 2)
    monkeypatch.setattr(rank_report, "ENTRIES_PER_PAGE", 3)
    write(rankings, library, tmp_path, [Problem("bad <one>", "why")], html="my page.html")
    index, folder = tmp_path / "my page.html", tmp_path / "my page-pages"
    text = index.read_text(encoding="utf-8")
    assert "7 spectra, 1 not ranked" in text and "bad &lt;one&gt;" in text and "<script" not in text
    assert sorted(file.name for file in folder.iterdir()) == [
        *("index-0002.html", "index-0003.html"),
        *(f"spectra-000{i}.html" for i in range(1, 5)),
    ]
    pages = [index, folder / "index-0002.html", folder / "index-0003.html"]
    numbers = []
    for page in [*pages, *folder.iterdir()]:
        for link in links(page):
            path, _, anchor = link.replace("%20", " ").partition("#")
            target = (page.parent / path) if path else page
            assert target.is_file()
            assert not anchor or f'id="{anchor}"' in target.read_text(encoding="utf-8")
            if page in pages and re.fullmatch(r"s\d+", anchor):
                numbers.append((pages.index(page), int(anchor[1:])))
    order = [number for _, number in sorted(numbers[:7], key=lambda item: item[0])]
    ordered = [rankings[number - 1] for number in order]
    keys = [(ranking.n_candidates == 1, -ranking.probabilities[0]) for ranking in ordered]
    assert sorted(order) == list(range(1, 8)) and keys == sorted(keys)
    sections = [(folder / f"spectra-000{i}.html").read_text(encoding="utf-8").count("<section") for i in range(1, 5)]
    assert sections == [2, 2, 2, 1]
    write(rankings[:2], library, tmp_path, html="my page.html")  # a shorter report replaces all pages
    assert not folder.exists() and index.read_text(encoding="utf-8").count("<section") == 2


def test_a_report_that_is_not_finished_leaves_the_files_as_they_were(rankings, library, tmp_path, monkeypatch):
    monkeypatch.setattr(rank_report, "SPECTRA_PER_PAGE", 2)
    write(rankings, library, tmp_path, html="r.html", tsv="r.tsv", mztab="r.mztab")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()}

    def interrupted():
        yield from rankings[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(interrupted(), library, tmp_path, html="r.html", tsv="r.tsv", mztab="r.mztab")
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()} == before
    (tmp_path / "r-pages" / "thesis.txt").touch()
    with pytest.raises(FileExistsError, match=r"--html: .*r-pages, which contains 'thesis.txt'"):
        write(rankings, library, tmp_path, html="r.html")


def test_the_page_says_what_sets_by_mass_do_not_promise(identifier, spectra, library, tmp_path):
    for by, is_warned in (("formula", False), ("mass", True)):
        ranked = list(identifier.rank(spectra[:3], library, query=Query(by)))
        write(ranked, library, tmp_path, html="r.html")
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert ("coverage of their sets (marked by *) is not promised" in text) == is_warned
        assert text.count("its coverage is not promised") == (3 if is_warned else 0)


def test_peaks_that_support_a_molecule_are_marked(rankings, library, tmp_path):
    """A peak of the molecule itself supports it; a peak that no part of it can have does not."""
    spectrum = rankings[0].spectrum
    mz = np.array([15.9, spectrum.precursor_mz])
    ranking = replace(rankings[0], spectrum=replace(spectrum, mz=mz, intensity=np.array([3.0, 1.0])))
    write([ranking], library, tmp_path, html="r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.count("1 of its 2 peaks marked") == len(ranking.rows) == text.count("explains 1 peaks, 25%")
    assert text.count('<use href="#p1"/>') == len(ranking.rows) and text.count('id="p1"') == 1


@pytest.mark.parametrize(
    ("adduct", "shift", "expected"),
    [("[M+H]+", 1.00728, [True, False]), ("[M-H]-", -1.00728, [True, False]), ("[M+Na]+", 1.00728, [True, True])],
)
def test_a_peak_supports_the_isomer_of_which_it_is_a_part(adduct, shift, expected):
    """Pentylbenzene loses its chain; pentamethylbenzene has no part with enough hydrogen. With Na, formulas decide."""
    chain = 70.07825  # C5H10
    spectrum = Spectrum([chain + shift], [1.0], 149.13, adduct)
    found = [find_support(spectrum, smiles, "C11H16")[0] for smiles in ("CCCCCc1ccccc1", "Cc1cc(C)c(C)c(C)c1C")]
    assert found == expected


def test_spectra_are_ordered_by_probability_or_else_by_confidence(rankings, library):
    plain = [replace(ranking, probabilities=None, n_candidates=9) for ranking in rankings]
    entries = [rank_report.Entry.of(i, ranking, library, 0) for i, ranking in enumerate(plain, 1)]
    confidences = [entry.confidence or 0.0 for entry in rank_report.order_by_confidence(entries)]
    assert confidences == sorted(confidences, reverse=True)
    chosen = [entry._replace(probability=entry.number / 10) for entry in entries]
    assert [entry.number for entry in rank_report.order_by_confidence(chosen)] == list(range(7, 0, -1))


def test_an_uncalibrated_model_is_ordered_by_margin(rankings, library, tmp_path):
    unknown = {"p_values": None, "other_p_value": None, "probabilities": None, "set_size": None}
    bare = [replace(ranking, **unknown) for ranking in rankings]
    entries = [rank_report.Entry.of(i, ranking, library, 0) for i, ranking in enumerate(bare, 1)]
    keys = [(entry.n_candidates == 1, -entry.margin) for entry in rank_report.order_by_confidence(entries)]
    assert keys == sorted(keys)
    write(bare, library, tmp_path, html="r.html")
    assert "not calibrated" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_only_candidate_of_a_spectrum_is_not_called_confident(rankings, library, tmp_path):
    numbered = [replace(ranking, n_candidates=i) for i, ranking in enumerate(rankings, 1)]
    write(numbered, library, tmp_path, html="r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "#s" in line]
    assert ["only candidate" in line for line in lines] == [False] * 6 + [True]
    assert "1 have one candidate only" in text
