"""Readers of text formats of multi-label and label-ranking data."""

from __future__ import annotations

import gzip
from pathlib import Path

from psilearn_lab.datasets import read_mulan, read_orders_csv, read_ranks_csv, read_svmlight_multilabel, read_xc
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets.seeds import new_seed, texts

MEKA_SPARSE = """% a comment
@relation 'toy: -C 2'
@attribute 'first tag' {0,1}
@attribute second {no,yes}
@attribute size numeric
@attribute "other size" real
@data
{0 1,2 2.5}
{1 yes,3 -1e-3}
{}
"""
MEKA_DENSE = """@relation 'toy: -C -1'
@attribute a numeric
@attribute b integer
@attribute tag {0,1}
@data
0.5,3,1
-1.25,0,0
"""
MULAN = MEKA_SPARSE.replace(": -C 2", "")
LABELS = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels"><label name="first tag"></label><label name="second"/></labels>
"""
XC = "3 4 3\n0,2 0:0.5 3:1.25\n 1:1\n1 2:-3e2 3:4\n"
SVMLIGHT = "0,2 1:0.5 4:1.25\n 2:1 # no label\n\n1 3:-3e2 4:4\n"
RANKS = 'size,"other, size",L1,L2,L3\n0.5,1,3,1,2\n1.5,-2e3,1,2,3\n'
PARTIAL_RANKS = "size,L1,L2,L3\n0.5,?,1,2\n1.5,2,1,1\n"
ORDERS = "size,ranking\n0.5,b>c>a\n1.5,a>b>c\n-2,c>a>b\n"
PARTIAL_ORDERS = "size,ranking\n0.5,b>c=a\n1.5,a\n"


def _write_mulan(folder: Path) -> None:
    for arff in (MULAN.encode(), gzip.compress(MULAN.encode(), mtime=0)):
        seed = new_seed(folder)
        (seed / "rows.arff").write_bytes(arff)
        (seed / "labels.xml").write_bytes(LABELS.encode())


TARGETS = (
    Target(
        "mulan",
        _write_mulan,
        lambda folder: read_mulan(folder / "rows.arff", folder / "labels.xml"),
        tokens=(b"@attribute", b"@data", b"{0 1}", b"'", b"{", b"}", b"?", b"<label name='size'/>", b"-1e309"),
    ),
    Target(
        "meka",
        texts("rows.arff", MEKA_SPARSE, MEKA_DENSE, compressed=True),
        lambda folder: read_mulan(folder / "rows.arff"),
        tokens=(b"@attribute", b"@data", b"-C", b"{0 1}", b"'", b"{", b"}", b"?", b"-1e309"),
    ),
    Target("xc", texts("rows.txt", XC, compressed=True), lambda folder: read_xc(folder / "rows.txt")),
    Target(
        "svmlight",
        texts("rows.svm", SVMLIGHT, compressed=True),
        lambda folder: read_svmlight_multilabel(folder / "rows.svm"),
    ),
    Target(
        "ranks-csv", texts("ranks.csv", RANKS, compressed=True), lambda folder: read_ranks_csv(folder / "ranks.csv")
    ),
    Target(
        "partial-ranks-csv",
        texts("ranks.csv", PARTIAL_RANKS, compressed=True),
        lambda folder: read_ranks_csv(folder / "ranks.csv", partial=True),
    ),
    Target(
        "orders-csv",
        texts("orders.csv", ORDERS, compressed=True),
        lambda folder: read_orders_csv(folder / "orders.csv"),
        tokens=(b">", b"=", b"a>b", b"ranking"),
    ),
    Target(
        "partial-orders-csv",
        texts("orders.csv", PARTIAL_ORDERS, compressed=True),
        lambda folder: read_orders_csv(folder / "orders.csv", partial=True),
        tokens=(b">", b"=", b"a>b", b"ranking"),
    ),
)
