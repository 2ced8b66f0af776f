"""The catalogue of all datasets: summary, sizes, files, origin and license.

Loaders read their files by this table, and ``psilearn data`` prints it.
"""

from __future__ import annotations

from psilearn_lab.datasets.dataset import NOT_STATED, Dataset, Form
from psilearn_lab.datasets.home import RemoteFile, github_url

_MULAN = "43f6389095ad71984264db4387a8074b22bc7d4a"  # commit of tsoumakas/mulan
_USPS = "cace72547474afa2d7b20ce43943961eeb7eb0cf"  # commit of hi-paris/structured-predictions
_QM9 = "da0a375b9218947a18446fd91a760a75e7ee035b"  # commit of sancar17/IDP-Inverse-Design-for-Molecules
_YEAST = "e6110c5e09317cfb035b01b594aa44d917a594f4"  # commit of alfaro96/scikit-lr
_SUSHI = "5bfe2a93b33426bc9d1f6445146d727d6b94f458"  # commit of akorba/Structured_Approach_Label_Ranking


def _mulan(folder: str, *files: str) -> Form:
    """Return files of the Mulan repository, each given as ``"name bytes sha256"``; the last one names the labels."""
    parts = []
    for name, size, sha256 in map(str.split, files):
        url = github_url("tsoumakas/mulan", _MULAN, f"data/multi-label/{folder}/{name}")
        parts.append(RemoteFile(f"mulan/{folder}/{name}", url, None if sha256 == "unknown" else sha256, int(size)))
    return Form("mulan", tuple(parts))


def _local_form(kind: str, *paths: str) -> Form:
    """Return files that cannot be downloaded and must be put into the data home."""
    return Form(kind, tuple(RemoteFile(path) for path in paths))


def _yeast(name: str, n_items: int, size: int, sha256: str) -> Dataset:
    """Return one of the datasets that rank conditions by gene expression of yeast; all have the same features."""
    folder = "plr/datasets/data/label_ranking/ranks"
    url = github_url("alfaro96/scikit-lr", _YEAST, f"{folder}/{name}.csv")
    return Dataset(
        name,
        f"{name.capitalize()}: features of yeast genes → ranking of {n_items} items by gene expression.",
        *(2465, 0, 24, n_items),
        "Eisen, Spellman, Brown and Botstein, Cluster analysis and display of genome-wide expression patterns, 1998; "
        "the task: Hüllermeier, Fürnkranz, Cheng and Brinker, Label ranking by learning pairwise preferences, 2008.",
        f"https://github.com/alfaro96/scikit-lr/tree/{_YEAST}/{folder}",
        (Form("ranks", (RemoteFile(f"label_ranking/{name}.csv", url, sha256, size),)),),
    )


_MULAN_URL = f"https://github.com/tsoumakas/mulan/tree/{_MULAN}/data/multi-label"

_ALL = (
    Dataset(
        "usps",
        "USPS: handwritten digits, 16×16 pixels; the upper half of an image → its lower half.",
        *(7291, 2007, 128, 128),
        "Hull, A database for handwritten text recognition research, 1994; the task: Weston, Chapelle, Elisseeff, "
        "Schölkopf and Vapnik, Kernel dependency estimation, 2003.",
        f"https://github.com/hi-paris/structured-predictions/tree/{_USPS}/stpredictions/datasets/usps",
        (
            Form(
                "hdf5",
                (
                    RemoteFile(
                        "usps/usps.h5",
                        github_url("hi-paris/structured-predictions", _USPS, "stpredictions/datasets/usps/usps.h5"),
                        "734f88c541104a956d88be2c95d03b4a463ffd74ccc2ba9c80841fb98e3fcb36",
                        2_913_522,
                    ),
                ),
            ),
        ),
        f"{NOT_STATED} (its repository: MIT)",
    ),
    Dataset(
        "bibtex",
        "Bibtex: words of bibliography entries → tags of BibSonomy users, 2.40 per row.",
        *(4880, 2515, 1836, 159),
        "Katakis, Tsoumakas and Vlahavas, Multilabel text classification for automated tag suggestion, 2008.",
        f"{_MULAN_URL}/bibtex",
        (
            _mulan(
                "bibtex",
                "bibtex-train.arff 2292961 8dcc9de6e0b2cebaec8c1f4fac78431adeeb73cfd3ab879b530a66d366e59174",
                "bibtex-test.arff 1215637 9b03329cde64d3f994bdf7fbbac3f3b10fe185c311cb9ae725475f59c7f3f922",
                "bibtex.xml 5880 08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232",
            ),
        ),
    ),
    Dataset(
        "bookmarks",
        "Bookmarks: words of bookmarked pages → tags of BibSonomy users, 2.03 per row.",
        *(60_000, 27_856, 2150, 208),
        "Katakis, Tsoumakas and Vlahavas, Multilabel text classification for automated tag suggestion, 2008.",
        f"{_MULAN_URL}/bookmarks",
        (
            _mulan(
                "bookmarks",
                "bookmarks.arff 73273832 unknown",
                "bookmarks.xml 7547 710acecc1aa359f357df8766e9359190e2788c05e4927bc73dc280d3b80c9d97",
            ),
        ),
    ),
    Dataset(
        "corel5k",
        "Corel5k: kinds of regions in images → words that describe the image, 3.52 per row (Mulan's features).",
        *(4500, 500, 499, 374),
        "Duygulu, Barnard, de Freitas and Forsyth, Object recognition as machine translation: learning a lexicon for "
        "a fixed image vocabulary, 2002.",
        f"{_MULAN_URL}/corel5k",
        (
            _mulan(
                "corel5k",
                "Corel5k-train-sparse.arff 339535 19eb253c447144bea74ffa86b4731a56022addae2ba7d0aab72ad07fdc02e9b3",
                "Corel5k-test-sparse.arff 60876 e8f8e9cd052c43ba7bdfdf99d242f461fc8c2a03163466d921e576887b51d8a7",
                "Corel5k.xml 11222 54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d",
            ),
        ),
    ),
    Dataset(
        "delicious",
        "Delicious: words of web pages → tags of del.icio.us users, 19.0 per row.",
        *(12_920, 3185, 500, 983),
        "Tsoumakas, Katakis and Vlahavas, Effective and efficient multilabel classification in domains with large "
        "number of labels, 2008.",
        f"{_MULAN_URL}/delicious",
        (
            _mulan(
                "delicious",
                "delicious-train.arff 3056590 030186cdb542ebdd32052fcdbb1ebe30115b3a22518c1b4b198c45eb827aebe1",
                "delicious-test.arff 757565 2dfb01723a819914b0ca83361177ed413ce3f2169851d9f228d4692915d63944",
                "delicious.xml 34303 4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2",
            ),
        ),
    ),
    Dataset(
        "mediamill",
        "Mediamill: visual features of shots of broadcast news → concepts seen in them, 4.38 per row.",
        *(30_993, 12_914, 120, 101),
        "Snoek, Worring, van Gemert, Geusebroek and Smeulders, The challenge problem for automated detection of 101 "
        "semantic concepts in multimedia, 2006.",
        "http://mulan.sourceforge.net",
        (
            Form(
                "npz",
                (
                    RemoteFile(
                        "converted/mediamill.npz",
                        sha256="e6b4e0dc8a78feeb52901ca6fa463c20a28908840ba62fb9da5c0c8b4a36cb24",
                        size=18_808_418,
                    ),
                ),
            ),
            _local_form(
                "mulan",
                "mulan/mediamill/mediamill-train.arff",
                "mulan/mediamill/mediamill-test.arff",
                "mulan/mediamill/mediamill.xml",
            ),
        ),
    ),
    Dataset(
        "eurlex4k",
        "EUR-Lex-4K: words of documents of European law → EuroVoc descriptors, 5.31 per row.",
        *(15_539, 3809, 5000, 3993),
        "Loza Mencía and Fürnkranz, Efficient multilabel classification algorithms for large-scale problems in the "
        "legal domain, 2010; this split: Bhatia et al., The extreme classification repository, 2016.",
        "http://manikvarma.org/downloads/XC/XMLRepository.html",
        (
            Form(
                "npz",
                (
                    RemoteFile(
                        "converted/eurlex4k.npz",
                        sha256="3c7012a3d08324c8284f01802fba959997521b2c36d196cb339f7f1356b8c531",
                        size=18_093_858,
                    ),
                ),
            ),
            _local_form("xc", "xc/eurlex4k/eurlex_train.txt", "xc/eurlex4k/eurlex_test.txt"),
        ),
    ),
    _yeast("cold", 4, 406_831, "b8718647a5e14030a2d9db8b8e4b7f641bab5e67f88e4f4d000d3e464b15d521"),
    _yeast("diau", 7, 421_630, "1d8fceae3554181bb1c653481cc3477d71a926f6df64ece77e5e939bd2327d59"),
    _yeast("dtt", 4, 406_831, "5d2e4c4a797b96fda5c6c98c05438d684805f2140ebf6053be9b29ab4bd9247c"),
    _yeast("heat", 6, 416_697, "9a4ad9140291f0c88b62fcdd7851fff288aaea359887d72e6a1f7a693da58b76"),
    Dataset(
        "sushi",
        "Sushi: sex, age, residence and further features of users → ranking of 10 items, kinds of sushi.",
        *(5000, 0, 125, 10),
        "Kamishima, Nantonac collaborative filtering: recommendation based on order responses, 2003.",
        f"https://github.com/akorba/Structured_Approach_Label_Ranking/tree/{_SUSHI}/data",
        (
            Form(
                "orders",
                (
                    RemoteFile(
                        "label_ranking/sushi_one_hot.txt",
                        github_url("akorba/Structured_Approach_Label_Ranking", _SUSHI, "data/sushi_one_hot.txt"),
                        "c5bc2c1d36706ed81b6cf2b387716121b91f820e6cc767cb71c94b2bb088824d",
                        1_364_214,
                    ),
                ),
            ),
        ),
    ),
    Dataset(
        "qm9",
        "QM9: SMILES of molecules with at most nine heavy atoms C, N, O and F, in random order (119,399 of 133,885).",
        *(119_399, 0, None, 119_399),
        "Ramakrishnan, Dral, Rupp and von Lilienfeld, Quantum chemistry structures and properties of 134 kilo "
        "molecules, 2014.",
        f"https://github.com/sancar17/IDP-Inverse-Design-for-Molecules/tree/{_QM9}/data",
        (
            Form(
                "lines",
                (
                    RemoteFile(
                        "qm9/qm9_smiles.txt",
                        github_url("sancar17/IDP-Inverse-Design-for-Molecules", _QM9, "data/qm9_smiles.txt"),
                        "7bf1716051c3892501f8112ebbb5dc56f11538cf3401cbe3e5d1219eae59eece",
                        2_725_619,
                    ),
                ),
            ),
        ),
        "CC0 (QM9)",
    ),
    Dataset(
        "metabolites",
        "Metabolites: merged tandem mass spectra of [M+H]+ ions from MassBank → molecules, each to be found among the "
        "molecules of its formula; five folds, and molecules of other formulas without spectra. Licenses vary by row.",
        *(3942, 0, None, 460_559),
        "MassBank consortium, MassBank-data 2025.05.1 (cite records by their accession); the task: Brouard, Shen, "
        "Dührkop, d'Alché-Buc, Böcker and Rousu, Fast metabolite identification with input output kernel regression, "
        "2016.",
        "https://github.com/MassBank/MassBank-data",
        (
            Form(
                "metabolites",
                tuple(
                    RemoteFile(f"metabolites/{name}.parquet", sha256=sha256, size=size)
                    for name, size, sha256 in (
                        ("spectra", 3_377_389, "7f7bbd731a6d7fac683223b19cd1c9aaab847d85dd8948cffd975f4aceef397a"),
                        ("candidates", 7_249_691, "b545f6773c898bcb8fdb20b30a1dda8d9cb992a9268095fc947d7d02b6c73f12"),
                        ("unlabelled", 1_483_359, "71cdd51629557584fa3270bd1d01d3da0a49f562149110731cac79b0d2801d13"),
                    )
                ),
            ),
        ),
        "per row (column license); 520 molecules CC BY-NC-SA",
    ),
    Dataset(
        "metabolite_records",
        "Metabolite records: the single tandem mass spectra of MassBank, of nine adducts and both polarities, each "
        "with its collision energy and instrument; folds as those of the merged spectra. Licenses vary by row.",
        *(69_662, 0, None, 5973),
        "MassBank consortium, MassBank-data 2025.05.1 (cite records by their accession).",
        "https://github.com/MassBank/MassBank-data",
        (
            Form(
                "metabolites",
                (
                    RemoteFile(
                        "metabolites/records.parquet",
                        sha256="1ae2cf43525830a37057ef6e1bddf73675b9bba9b5ade3b6208386054f93aaa3",
                        size=7_399_264,
                    ),
                ),
            ),
        ),
        "per row (column license)",
    ),
)

DATASETS = {dataset.name: dataset for dataset in _ALL}
