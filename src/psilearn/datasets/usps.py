"""USPS digits: predict the lower half of an image from the upper half."""

import numpy as np
from sklearn.utils import Bunch

from psilearn.datasets.home import RemoteFile, github

_FILE = RemoteFile(
    "usps/usps.h5",
    github(
        "hi-paris/structured-predictions",
        "cace72547474afa2d7b20ce43943961eeb7eb0cf",
        "stpredictions/datasets/usps/usps.h5",
    ),
    "734f88c541104a956d88be2c95d03b4a463ffd74ccc2ba9c80841fb98e3fcb36",
)


def load_usps() -> Bunch:
    """Load the USPS digits, 16×16 pixels in [0, 1], cut in halves.

    Returns
    -------
    Bunch with ``X`` (9298, 128) upper halves, ``Y`` (9298, 128) lower halves, ``digits`` (9298,), and the original
    split as indices ``train`` (7291) and ``test`` (2007). The paper pairs the first 1000 of ``train`` and takes the
    lower halves of the last 6000 as unlabeled outputs. Reading needs the extra ``psilearn[data]``.
    """
    path = _FILE.fetch()
    try:
        import h5py
    except ImportError as error:
        raise ImportError("load_usps reads HDF5: install the extra psilearn[data].") from error
    with h5py.File(path) as file:
        pixels = np.concatenate([file["train/data"][:], file["test/data"][:]]).astype(np.float64)
        digits = np.concatenate([file["train/target"][:], file["test/target"][:]])
        n_train = len(file["train/target"])
    return Bunch(
        X=pixels[:, :128],
        Y=pixels[:, 128:],
        digits=digits,
        train=np.arange(n_train),
        test=np.arange(n_train, len(digits)),
        source=_FILE.url,
        DESCR="USPS handwritten digits (Hull, 1994): upper half → lower half, as in Weston et al., 2003.",
    )
