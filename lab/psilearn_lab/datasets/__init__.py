"""The datasets of the experiments, loaded by name as scikit-learn Bunches.

The package contains no data. :func:`load` looks for the files in the data home (``PSILEARN_DATA``, else
``~/psilearn_data``), then downloads them from the public source with a checksum; otherwise its error states which file
belongs where. ``psilearn data`` lists all datasets.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from psilearn.utils import convert_read_errors, validation
from psilearn_lab.datasets.catalogue import DATASETS, Dataset, data_home
from psilearn_lab.datasets.readers import READERS, read_debian

__all__ = ["DATASETS", "data_home", "load"]


def load(name: str) -> Bunch:
    """Load a dataset of the catalogue.

    Parameters
    ----------
    name : str
        A name that ``psilearn data`` lists, such as ``"usps"``, ``"bibtex"``, ``"cold"``, ``"iris-partial"``,
        ``"debian"``, ``"qm9"`` or ``"metabolites"``.

    Returns
    -------
    Bunch
        Dictionary-like object with the following attributes.

        - ``X`` : array or CSR matrix of float64 of shape (n, d), the inputs.
        - ``Y`` : the outputs: lower halves of images (array of shape (n, 128)), labels (CSR matrix of int8 of shape
          (n, L)) or ranks, 1 for the preferred item (array of int64 of shape (n, K)).
        - ``train``, ``test`` : indices of the rows of both parts, if the source separates them.
        - ``feature_names``, and ``label_names`` or ``item_names`` : lists of str, where the files have them.
        - ``digits`` : array of shape (n,), the class of each image (USPS).
        - ``texts``, ``tags``, ``packages`` : descriptions, lists of tags and names of Debian packages; packages of the
          same source, which are near duplicates, are in the same part.
        - ``smiles`` : list of str, the molecules of QM9.
        - ``spectra`` : list of :class:`~psilearn_chem.spectra.Spectrum` with formula and SMILES: one per molecule,
          merged from the records that ``metadata["accessions"]`` names (metabolites), or all records, with
          ``collision_energy``, ``instrument`` and ``instrument_family`` in ``metadata`` (metabolite_records).
        - ``inchikeys``, ``fold``, ``licences``, ``noncommercial`` : arrays of shape (n,), the first block of the
          InChIKey of each molecule, its fold of the cross-validation (−1 if there is none), the license of each
          spectrum, and whether it excludes commercial use.
        - ``candidates``, ``unlabeled`` : :class:`~psilearn_chem.molecules.MoleculeList` of molecules that contain the
          true ones, named by the first blocks of InChIKeys, and of molecules with other formulas (metabolites).
        - ``DESCR``, ``licence``, ``source`` : description, license and origin.

    Raises
    ------
    FileNotFoundError
        If a file is missing and cannot be downloaded; the message states where it belongs.
    ValueError
        If a file is not the expected one.

    See Also
    --------
    data_home : Return the folder of the files.

    Examples
    --------
    >>> from psilearn_lab.datasets import load
    >>> bibtex = load("bibtex")  # doctest: +SKIP
    >>> bibtex.X.shape, bibtex.Y.shape, len(bibtex.train)  # doctest: +SKIP
    ((7395, 1836), (7395, 159), 4880)
    """
    dataset = DATASETS[validation.check_option(name, list(DATASETS), "name")]
    if dataset.forms[0].kind == "metabolites":
        from psilearn_lab.datasets import metabolites  # imports psilearn_chem

        load_kind = metabolites.load_merged if name == "metabolites" else metabolites.load_records
    else:
        load_kind = {"debian": _load_packages, "lines": _load_smiles}.get(dataset.forms[0].kind, _load_rows)
    return Bunch(**load_kind(dataset), DESCR=dataset.description, licence=dataset.licence, source=dataset.source)


def _load_rows(dataset: Dataset) -> Bunch:
    """Return all rows, those for training first; names are those of the first part."""
    kind, paths = dataset.fetch()
    with convert_read_errors(paths[0], "a file of a dataset"):
        parts = READERS[kind](paths)
        bunch = Bunch(**{name: value for name, value in parts[0].items() if name.endswith("names")})
        for key in {"X", "Y", "digits"} & parts[0].keys():
            blocks = [part[key] for part in parts]
            bunch[key] = sparse.vstack(blocks, "csr") if sparse.issparse(blocks[0]) else np.concatenate(blocks)
        split = [dataset.n_train, dataset.n_test]
        expected = (split if len(parts) == 2 else [sum(split)], dataset.n_features, dataset.n_outputs)
        sizes = ([part.X.shape[0] for part in parts], bunch.X.shape[1], bunch.Y.shape[1])
        if sizes != expected:
            raise ValueError(
                f"{', '.join(map(str, paths))}: {sizes[0]} rows, {sizes[1]} features and {sizes[2]} outputs; "
                f"{dataset.name} has {expected[0]}, {expected[1]} and {expected[2]}. Download the files again: "
                f"{dataset.source}"
            )
    if dataset.n_test:
        bunch.train, bunch.test = np.split(np.arange(sum(split)), [dataset.n_train])
    if sparse.issparse(bunch.X) and dataset.name == "mediamill":  # dense numbers in a sparse file
        bunch.X = bunch.X.toarray()
    return bunch


def _load_smiles(dataset: Dataset) -> Bunch:
    path = dataset.fetch()[1][0]
    smiles = path.read_text("ascii").split()
    if len(smiles) != dataset.n_train:
        raise ValueError(f"{path} has {len(smiles)} lines, expected {dataset.n_train}.")
    return Bunch(smiles=smiles)


def _load_packages(dataset: Dataset) -> Bunch:
    file = dataset.forms[0].files[0]
    path = file.fetch() if file.exists() else file.target
    try:
        with convert_read_errors(path, "a table of packages"):
            return read_debian(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{dataset.name} is not in the data home, and {error}. {dataset.describe_files()} A Debian system makes "
            f"it from the fields Package, Source, Section, Description and Tag of apt-cache dumpavail."
        ) from error
