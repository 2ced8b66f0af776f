"""Loaders: one a dataset, each a scikit-learn Bunch. The package holds no data.

A loader looks in the data home (``PSILEARN_DATA``, else ``~/psilearn_data``), then downloads from the public source
with a checksum, then says which file belongs where.
"""

from psilearn.datasets.home import data_home
from psilearn.datasets.mulan import load_bibtex, read_mulan
from psilearn.datasets.usps import load_usps

__all__ = ["data_home", "load_bibtex", "load_usps", "read_mulan"]
