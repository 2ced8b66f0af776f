"""Loaders: the sizes of the datasets, and files in other forms or of other sizes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from psilearn_lab import datasets
from psilearn_lab.datasets.catalogue import DATASETS, RemoteFile

# rows, features, labels, labels per row, training rows: as stated in the literature
SIZES = {
    "bibtex": (7395, 1836, 159, 2.40, 4880),
    "bookmarks": (87856, 2150, 208, 2.03, 60000),
    "corel5k": (5000, 499, 374, 3.52, 4500),
    "delicious": (16105, 500, 983, 19.02, 12920),
    "mediamill": (43907, 120, 101, 4.38, 30993),
    "eurlex4k": (19348, 5000, 3993, 5.31, 15539),
}

RANKINGS = {  # rows, features, items
    "housing": (506, 6, 6),
    "cold": (2465, 24, 4),
    "diau": (2465, 24, 7),
    "dtt": (2465, 24, 4),
    "heat": (2465, 24, 6),
    "sushi": (5000, 125, 10),
}


def of_dataset(name):
    return pytest.param(name, marks=pytest.mark.data(*(file.path for file in DATASETS[name].forms[0].files)))


def load(name):
    bunch = datasets.load(name)
    n = bunch.X.shape[0]
    assert bunch.Y.shape[0] == n
    np.testing.assert_array_equal(np.concatenate([bunch.train, bunch.test]), np.arange(n))
    assert "Reference: " in bunch.DESCR and f"{n} rows" in bunch.DESCR
    assert "not stated" in bunch.licence and bunch.source.startswith("http")
    return bunch


@pytest.mark.parametrize("name", [of_dataset(name) for name in SIZES])
def test_sizes_of_multilabel_data(name):
    n, n_features, n_labels, labels_per_row, n_train = SIZES[name]
    bunch = load(name)
    assert bunch.X.shape == (n, n_features) and bunch.Y.shape == (n, n_labels)
    assert len(bunch.train) == n_train and len(bunch.test) == n - n_train
    assert bunch.X.dtype == np.float64 and bunch.Y.dtype == np.int8 and set(bunch.Y.data) == {1}
    assert sparse.issparse(bunch.X) == (name != "mediamill")
    assert bunch.Y.sum() / n == pytest.approx(labels_per_row, abs=0.005)
    for names, width in ((bunch.get("feature_names"), n_features), (bunch.get("label_names"), n_labels)):
        assert names is None if name in ("mediamill", "eurlex4k") else len(names) == width


@pytest.mark.data("usps/usps.h5")
def test_usps():
    usps = load("usps")
    assert usps.X.shape == usps.Y.shape == (9298, 128)
    assert (len(usps.train), len(usps.test)) == (7291, 2007)
    assert usps.X.min() >= 0 and usps.X.max() <= 1 and set(usps.digits) == set(range(10))


@pytest.mark.parametrize("name", [of_dataset(name) for name in RANKINGS])
def test_label_rankings(name):
    n, n_features, n_items = RANKINGS[name]
    bunch = datasets.load(name)
    assert bunch.X.shape == (n, n_features) and bunch.Y.shape == (n, n_items)
    assert bunch.X.dtype == np.float64 and bunch.Y.dtype == np.int64
    assert (np.sort(bunch.Y, axis=1) == np.arange(1, n_items + 1)).all()
    assert len(bunch.feature_names) == n_features
    assert bunch.item_names == (list("abcdefghij") if name == "sushi" else [f"L{i}" for i in range(1, n_items + 1)])
    assert f"{n} rows, {n_features} features, {n_items} outputs." in bunch.DESCR
    assert "train" not in bunch and "test" not in bunch and "label_names" not in bunch
    assert "not stated" in bunch.licence and bunch.source.startswith("https://github.com/")


@pytest.mark.data("label_ranking/cold.csv", "label_ranking/sushi_one_hot.txt")
def test_first_rows_of_label_rankings():
    cold, sushi = datasets.load("cold"), datasets.load("sushi")
    assert cold.X[0, :2].tolist() == [0.911, 0.0271] and cold.Y[0].tolist() == [3, 1, 2, 4]
    assert sushi.X[0, :3].tolist() == [0, 2, 355]
    assert sushi.Y[0].tolist() == [2, 8, 10, 3, 4, 1, 5, 9, 7, 6]  # f>a>d>e>g>j>i>b>h>c


@pytest.mark.parametrize("name", ["mnist", None])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ValueError, match=rf"name must be one of usps, bibtex, .*; got {name!r}"):
        datasets.load(name)


@pytest.fixture
def small(home, monkeypatch):
    """Shrink a dataset of the catalogue to 3 + 2 rows of 3 features and 2 labels, whose files have no checksum."""

    def shrink(name, form):
        dataset = DATASETS[name]
        files = tuple(replace(file, sha256=None, size=None, url=None) for file in dataset.forms[form].files)
        shrunk = replace(dataset.forms[form], files=files)
        monkeypatch.setitem(
            DATASETS, name, replace(dataset, n_train=3, n_test=2, n_features=3, n_outputs=2, forms=(shrunk,))
        )
        for file in files:
            file.target.parent.mkdir(parents=True, exist_ok=True)
        return [file.target for file in files]

    return shrink


X = np.arange(15.0).reshape(5, 3) % 4
Y = np.array([[1, 0], [0, 0], [1, 1], [0, 1], [1, 0]])


def arff(X, Y, dense):
    lines = ["@relation toy", *(f"@attribute 'x {j}' numeric" for j in range(X.shape[1]))]
    lines += [f"@attribute y{j} {{0,1}}" for j in range(Y.shape[1])] + ["@data"]
    for row in np.hstack([X, Y.astype(int).astype(object)]):
        pairs = ",".join(f"{j} {value}" for j, value in enumerate(row) if value)
        lines.append(",".join(map(str, row)) if dense else f"{{{pairs}}}")
    return "\n".join(lines) + "\n"


def xc(X, Y):
    lines = [f"{len(X)} {X.shape[1]} {Y.shape[1]}"]
    for x, y in zip(X, Y, strict=True):
        lines.append(f"{','.join(map(str, np.flatnonzero(y)))} {' '.join(f'{j}:{x[j]}' for j in np.flatnonzero(x))}")
    return "\n".join(lines) + "\n"


XML = '<labels><label name="y0"/><label name="y1"/></labels>'


def assert_small(bunch):
    np.testing.assert_array_equal(bunch.X if isinstance(bunch.X, np.ndarray) else bunch.X.toarray(), X)
    np.testing.assert_array_equal(bunch.Y.toarray(), Y)
    assert (len(bunch.train), len(bunch.test)) == (3, 2)


def test_bookmarks_is_split_by_the_number_of_rows(small):
    rows, labels = small("bookmarks", 0)
    rows.write_text(arff(X, Y, dense=False))
    labels.write_text(XML)
    bookmarks = load("bookmarks")
    assert_small(bookmarks)
    assert bookmarks.label_names == ["y0", "y1"]


def test_bookmarks_of_another_size_raises(home):
    file = DATASETS["bookmarks"].forms[0].files[0]
    file.target.parent.mkdir(parents=True)
    file.target.write_text("@relation truncated")
    with pytest.raises(
        ValueError, match=r"bookmarks.arff is not the expected file: it has 19 bytes, expected 73,273,832"
    ):
        datasets.load("bookmarks")


def test_mediamill_from_the_files_of_mulan(small):
    train, test, labels = small("mediamill", 1)
    train.write_text(arff(X[:3], Y[:3], dense=True))
    test.write_text(arff(X[3:], Y[3:], dense=True))
    labels.write_text(XML)
    assert_small(load("mediamill"))
    test.write_text(arff(X[3:], Y[3:], dense=True).replace("'x 1'", "other"))
    with pytest.raises(ValueError, match=r"mediamill-test.arff: other attributes, or in another order, than in"):
        datasets.load("mediamill")


def test_eurlex_from_the_files_of_the_repository(small):
    train, test = small("eurlex4k", 1)
    train.write_text(xc(X[:3], Y[:3]))
    test.write_text(xc(X[3:], Y[3:]))
    assert_small(load("eurlex4k"))


def test_label_rankings_of_other_sizes_raise(home, monkeypatch):
    dataset = DATASETS["cold"]
    file = replace(dataset.forms[0].files[0], sha256=None, size=None, url=None)
    monkeypatch.setitem(DATASETS, "cold", replace(dataset, forms=(replace(dataset.forms[0], files=(file,)),)))
    file.target.parent.mkdir(parents=True)
    file.target.write_text("A1,L1,L2\n0.5,2,1\n")
    with pytest.raises(
        ValueError, match=r"cold.csv: \[1\] rows, 1 features and 2 outputs; cold has \[2465\], 24 and 4"
    ):
        datasets.load("cold")


@pytest.mark.parametrize(
    ("cut", "width", "words"),
    [(2, 3, r"\[2, 3\] rows, 3 features and 2 outputs; eurlex4k has \[3, 2\], 3 and 2"), (3, 2, r"2 features")],
)
def test_complete_files_of_other_sizes_raise(small, cut, width, words):
    train, test = small("eurlex4k", 1)
    train.write_text(xc(X[:cut, :width], Y[:cut]))
    test.write_text(xc(X[cut:, :width], Y[cut:]))
    with pytest.raises(ValueError, match=rf"eurlex_train.txt, .*eurlex_test.txt: .*{words}"):
        datasets.load("eurlex4k")


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("mediamill", ["mulan/mediamill/mediamill-train.arff", "mediamill.xml"]),
        ("eurlex4k", ["xc/eurlex4k/eurlex_test"]),
    ],
)
def test_errors_about_missing_files_state_their_place_and_source(home, name, files):
    with pytest.raises(FileNotFoundError, match="cannot be downloaded automatically") as caught:
        datasets.load(name)
    for word in (str(home), f"converted/{name}.npz", DATASETS[name].source, "PSILEARN_DATA", *files):
        assert word in str(caught.value)
    assert not home.exists()


def test_a_corrupt_conversion_raises(home):
    (home / "converted").mkdir(parents=True)
    (home / "converted" / "mediamill.npz").write_bytes(b"\0" * DATASETS["mediamill"].forms[0].files[0].size)
    with pytest.raises(ValueError, match=r"mediamill.npz is not the expected file: its sha256"):
        datasets.load("mediamill")


def test_molecules_are_the_lines_of_a_file(home, monkeypatch):
    dataset = DATASETS["qm9"]
    file = RemoteFile("qm9/qm9_smiles.txt")
    small = replace(dataset, n_train=2, forms=(replace(dataset.forms[0], files=(file,)),))
    monkeypatch.setitem(DATASETS, "qm9", small)
    path = home / "qm9" / "qm9_smiles.txt"
    path.parent.mkdir(parents=True)
    path.write_text("CCO\nC#N\n", encoding="ascii")
    data = datasets.load("qm9")
    assert data.smiles == ["CCO", "C#N"]
    assert "2 rows, 119399 outputs" in data.DESCR
    path.write_text("CCO\n", encoding="ascii")
    with pytest.raises(ValueError, match="has 1 lines, expected 2"):
        datasets.load("qm9")


@pytest.mark.parametrize("name", [of_dataset(name) for name in DATASETS if name.endswith("-partial")])
def test_partial_rankings_have_ties(name):
    ranks = datasets.load(name).Y
    assert ranks.min() == 1 and ranks.max() < ranks.shape[1] + 1
    assert np.mean([len(set(row)) < len(row) for row in ranks.tolist()]) > 0.9


@pytest.mark.data("debian/packages.csv.gz")
def test_debian():
    data = datasets.load("debian")
    assert len(data.texts) == len(data.tags) == 30296 and (len(data.train), len(data.test)) == (24210, 6086)
    assert data.texts[0] == "Real-time strategy game of ancient warfare" and "game::strategy" in data.tags[0]
    assert len({tag for tags in data.tags for tag in tags}) == 598 and "24210 train, 6086 test" in data.DESCR


def test_debian_without_the_file_and_apt_states_its_place(home, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match=r"no command apt-cache.*Put into .*debian/packages.csv.gz.*dumpavail"):
        datasets.load("debian")
