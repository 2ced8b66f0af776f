"""One loader per dataset: files from the data home or the public source, checked against the catalogue."""

from __future__ import annotations

from scipy import sparse
from sklearn.utils import Bunch

from psilearn.utils import validation
from psilearn_lab.datasets.catalogue import DATASETS
from psilearn_lab.datasets.form_readers import load_dataset, load_lines


def load_usps() -> Bunch:
    """Load the USPS digits, images of 16×16 pixels in [0, 1], cut in halves.

    The paper uses the first 1000 training rows as pairs and the lower halves of the last 6000 as unlabeled outputs.
    Reading needs the extra ``psilearn[data]``.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : array of float64 of shape (9298, 128), the upper halves.
        - ``Y`` : array of float64 of shape (9298, 128), the lower halves.
        - ``digits`` : array of int of shape (9298,), the digit of each image.
        - ``train`` : array of shape (7291,), the indices of the training rows of the original split.
        - ``test`` : array of shape (2007,), the indices of the test rows.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    ImportError
        If h5py is not installed.
    FileNotFoundError
        If the file is missing in the data home and cannot be downloaded.
    ValueError
        If the file is not the expected one.

    See Also
    --------
    psilearn.plotting.plot_completions : Draw predicted halves.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_usps
    >>> data = load_usps()  # doctest: +SKIP
    >>> data.X[data.train].shape  # doctest: +SKIP
    (7291, 128)
    """
    return load_dataset("usps")


def load_bibtex() -> Bunch:
    """Load Bibtex: words of bibliography entries, and their tags.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (7395, 1836), the features.
        - ``Y`` : CSR matrix of int8 of shape (7395, 159), the labels, stored as ones.
        - ``train`` : array of shape (4880,), the indices of the training rows of the original split.
        - ``test`` : array of shape (2515,), the indices of the test rows.
        - ``feature_names`` : list of str, the name of each feature.
        - ``label_names`` : list of str, the name of each label.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If a file is missing in the data home and cannot be downloaded.
    ValueError
        If a file is not the expected one.

    See Also
    --------
    load_delicious : Tags of web pages.
    read_mulan : Read a file in the format of this dataset.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_bibtex
    >>> data = load_bibtex()  # doctest: +SKIP
    >>> data.Y[data.train].shape  # doctest: +SKIP
    (4880, 159)
    """
    return load_dataset("bibtex")


def load_bookmarks() -> Bunch:
    """Load Bookmarks: words of bookmarked pages, and their tags.

    No checksum of the file of rows (73 MB) is known: the numbers of bytes, rows, features and labels are checked
    instead.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (87856, 2150), the features.
        - ``Y`` : CSR matrix of int8 of shape (87856, 208), the labels, stored as ones.
        - ``train`` : array of shape (60000,), the indices of the first 60000 rows, the training rows of the paper.
        - ``test`` : array of shape (27856,), the indices of the test rows.
        - ``feature_names`` : list of str, the name of each feature.
        - ``label_names`` : list of str, the name of each label.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If a file is missing in the data home and cannot be downloaded.
    ValueError
        If a file is not the expected one.

    See Also
    --------
    load_bibtex : A smaller dataset of the same origin.
    read_mulan : Read a file in the format of this dataset.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_bookmarks
    >>> data = load_bookmarks()  # doctest: +SKIP
    >>> data.Y[data.train].shape  # doctest: +SKIP
    (60000, 208)
    """
    return load_dataset("bookmarks")


def load_corel5k() -> Bunch:
    """Load Corel5k with the features of Mulan: regions of images, and words that describe the image.

    The paper uses other features (37152 dimensions, 260 labels), so its results are not comparable.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (5000, 499), the features.
        - ``Y`` : CSR matrix of int8 of shape (5000, 374), the labels, stored as ones.
        - ``train`` : array of shape (4500,), the indices of the training rows of the original split.
        - ``test`` : array of shape (500,), the indices of the test rows.
        - ``feature_names`` : list of str, the name of each feature.
        - ``label_names`` : list of str, the name of each label.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If a file is missing in the data home and cannot be downloaded.
    ValueError
        If a file is not the expected one.

    See Also
    --------
    load_delicious : Tags of web pages.
    read_mulan : Read a file in the format of this dataset.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_corel5k
    >>> data = load_corel5k()  # doctest: +SKIP
    >>> data.Y[data.train].shape  # doctest: +SKIP
    (4500, 374)
    """
    return load_dataset("corel5k")


def load_delicious() -> Bunch:
    """Load Delicious: words of web pages, and their tags.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (16105, 500), the features.
        - ``Y`` : CSR matrix of int8 of shape (16105, 983), the labels, stored as ones.
        - ``train`` : array of shape (12920,), the indices of the training rows of the original split.
        - ``test`` : array of shape (3185,), the indices of the test rows.
        - ``feature_names`` : list of str, the name of each feature.
        - ``label_names`` : list of str, the name of each label.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If a file is missing in the data home and cannot be downloaded.
    ValueError
        If a file is not the expected one.

    See Also
    --------
    load_bibtex : Tags of bibliography entries.
    read_mulan : Read a file in the format of this dataset.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_delicious
    >>> data = load_delicious()  # doctest: +SKIP
    >>> data.Y[data.train].shape  # doctest: +SKIP
    (12920, 983)
    """
    return load_dataset("delicious")


def load_mediamill() -> Bunch:
    """Load Mediamill: visual features of shots of broadcast news, and the concepts in them.

    It is read from a converted file in the data home, whose features are rounded to single precision and which has no
    names, or from the ARFF files of Mulan in the data home. Nothing is downloaded.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : array of float64 of shape (43907, 120), the features.
        - ``Y`` : CSR matrix of int8 of shape (43907, 101), the labels, stored as ones.
        - ``train`` : array of shape (30993,), the indices of the training rows of the original split.
        - ``test`` : array of shape (12914,), the indices of the test rows.
        - ``feature_names`` : list of str or None, the name of each feature if known.
        - ``label_names`` : list of str or None, the name of each label if known.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If the files are missing in the data home.
    ValueError
        If a file is not the expected one.

    See Also
    --------
    load_delicious : Tags of web pages.
    read_mulan : Read a file in the format of this dataset.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_mediamill
    >>> data = load_mediamill()  # doctest: +SKIP
    >>> data.Y[data.train].shape  # doctest: +SKIP
    (30993, 101)
    """
    bunch = load_dataset("mediamill")
    bunch.X = bunch.X.toarray() if sparse.issparse(bunch.X) else bunch.X
    return bunch


def load_eurlex4k() -> Bunch:
    """Load EUR-Lex-4K: words of documents of European law, and their EuroVoc descriptors.

    It is read from a converted file in the data home, whose features are rounded to single precision, or from the text
    files of the Extreme Classification Repository in the data home. Nothing is downloaded.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : CSR matrix of float64 of shape (19348, 5000), the features.
        - ``Y`` : CSR matrix of int8 of shape (19348, 3993), the labels, stored as ones.
        - ``train`` : array of shape (15539,), the indices of the training rows of the repository's split.
        - ``test`` : array of shape (3809,), the indices of the test rows.
        - ``feature_names`` and ``label_names`` : None; the names are unknown.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If the files are missing in the data home.
    ValueError
        If a file is not the expected one.

    See Also
    --------
    load_bibtex : A smaller dataset of texts.
    read_xc : Read a file in the format of the repository.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_eurlex4k
    >>> data = load_eurlex4k()  # doctest: +SKIP
    >>> data.Y[data.train].shape  # doctest: +SKIP
    (15539, 3993)
    """
    return load_dataset("eurlex4k")


def load_label_ranking(name: str) -> Bunch:
    """Load one of the label-ranking datasets; their sources give no split.

    Parameters
    ----------
    name : {"cold", "diau", "dtt", "heat", "sushi"}
        The dataset. The first four describe genes of yeast: 2465 rows, 24 features and 4, 7, 4 or 6 items. The last one
        describes 5000 users with 125 features (categories are one-hot) and 10 items.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : array of float64 of shape (n, d), the features.
        - ``Y`` : array of int64 of shape (n, K), ranks and not an order: ``Y[i, j]`` is the rank of item j, and 1 is
          preferred.
        - ``feature_names`` : list of d str, the name of each feature.
        - ``item_names`` : list of K str, the name of each item.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If the file is missing in the data home and cannot be downloaded.
    ValueError
        If the name is unknown, or the file is not the expected one.

    See Also
    --------
    read_ranks_csv : Read a file in the format of the genes of yeast.
    read_orders_csv : Read a file in the format of the users.
    psilearn.metrics.kendall_tau : The usual metric of this task.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_label_ranking
    >>> data = load_label_ranking("cold")  # doctest: +SKIP
    >>> data.Y[0]  # doctest: +SKIP
    array([3, 1, 2, 4])
    """
    known = [dataset.name for dataset in DATASETS.values() if dataset.is_ranking]
    return load_dataset(validation.check_option(name, known, "name"))


def load_qm9() -> Bunch:
    """Load SMILES of molecules of QM9: at most nine heavy atoms C, N, O and F.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``smiles`` : list of 119,399 str, in random order and without repetitions.
        - ``DESCR``, ``licence`` and ``source`` : str, the description, the license and the origin of the dataset.

    Raises
    ------
    FileNotFoundError
        If the file is missing in the data home and cannot be downloaded.
    ValueError
        If the file is not the expected one.

    See Also
    --------
    psilearn_chem.molecule_graphs : The graphs of molecules.

    Examples
    --------
    >>> from psilearn_lab.datasets import load_qm9
    >>> load_qm9().smiles[0]  # doctest: +SKIP
    'O=C1Cc2[nH]ccc2N1'
    """
    return load_lines("qm9")
