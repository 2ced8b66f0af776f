"""Models of table files: CSV, TSV, Parquet, svmlight and ARFF; the commands ``psilearn fit``, ``search``, ``predict``.

A :class:`TableModel` is a fitted estimator with the description of its columns: it reads a table and returns
predictions in the form of the outputs of the training table. It is saved without pickle.
"""

from psilearn.app.tables.table import Table
from psilearn.app.tables.table_formats import read_table
from psilearn.app.tables.table_model import TableModel

__all__ = ["Table", "TableModel", "read_table"]
