"""Loaders of datasets as scikit-learn Bunches, and readers of multi-label and label-ranking formats.

The package contains no data. A loader looks for its files in the data home (``PSILEARN_DATA``, else
``~/psilearn_data``), then downloads them from the public source with a checksum; otherwise its error states which file
belongs where. ``psilearn data`` lists all datasets.
"""

from psilearn_lab.datasets.home import data_home
from psilearn_lab.datasets.loaders import (
    load_bibtex,
    load_bookmarks,
    load_corel5k,
    load_delicious,
    load_eurlex4k,
    load_label_ranking,
    load_mediamill,
    load_qm9,
    load_usps,
)
from psilearn_lab.datasets.mulan import read_mulan
from psilearn_lab.datasets.ranking_files import read_orders_csv, read_ranks_csv
from psilearn_lab.datasets.xc import read_svmlight_multilabel, read_xc

__all__ = [
    "data_home",
    "load_bibtex",
    "load_bookmarks",
    "load_corel5k",
    "load_delicious",
    "load_eurlex4k",
    "load_label_ranking",
    "load_mediamill",
    "load_qm9",
    "load_usps",
    "read_mulan",
    "read_orders_csv",
    "read_ranks_csv",
    "read_svmlight_multilabel",
    "read_xc",
]
