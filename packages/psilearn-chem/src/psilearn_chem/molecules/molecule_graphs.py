"""Molecules as labeled graphs of their heavy atoms, graphs as molecules, and their edits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from joblib import delayed
from rdkit import Chem

from psilearn.decoding import GraphEdits
from psilearn.kernels.graph import Graph
from psilearn.utils import run_parallel, validation
from psilearn_chem.molecules.smiles import parse_smiles

if TYPE_CHECKING:
    from rdkit.Chem import Mol


AROMATIC = "aromatic"
BLOCK_MOLECULES = 2000  # molecules that a process converts at a time


def molecule_graph(molecule: str | Mol, *, kekulize: bool = True) -> Graph:
    """Return the graph of a molecule: heavy atoms labeled by their element, bonds by their order.

    Hydrogen atoms, charges and stereochemistry are left out. The nodes are in the order of the atoms.

    Parameters
    ----------
    molecule : str or rdkit.Chem.Mol
        A SMILES, or a molecule of RDKit.
    kekulize : bool, default=True
        Whether aromatic bonds become single and double bonds (1 and 2). Otherwise they have the label "aromatic".

    Returns
    -------
    Graph
        The labels of nodes are symbols of elements, those of edges 1, 2, 3 or "aromatic".

    Raises
    ------
    TypeError
        If the molecule is neither text nor a molecule of RDKit.
    ValueError
        If the SMILES cannot be read, or the molecule has no atoms.

    See Also
    --------
    molecule_graphs : The graphs of many molecules.
    graph_to_smiles : The opposite direction.
    psilearn.kernels.WeisfeilerLehman : A kernel on graphs.

    Examples
    --------
    >>> from psilearn_chem import molecule_graph
    >>> molecule_graph("C=O").edges
    ((0, 1, 2),)
    """
    if isinstance(molecule, str):
        parsed = parse_smiles(molecule)
        if parsed is None:
            raise ValueError(f"molecule must be a valid SMILES with at least one atom; got {molecule!r:.80}.")
        molecule = parsed
    if not isinstance(molecule, Chem.Mol):
        raise TypeError(f"molecule must be a SMILES or a molecule of RDKit; got {type(molecule).__name__}.")
    heavy = Chem.RemoveHs(molecule, sanitize=False)
    if validation.check_bool(kekulize, "kekulize"):
        Chem.Kekulize(heavy, clearAromaticFlags=True)
    labels = [atom.GetSymbol() for atom in heavy.GetAtoms()]
    edges = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _order(bond)) for bond in heavy.GetBonds()]
    return Graph(labels, edges)


def molecule_graphs(molecules: Iterable[str | Mol], *, kekulize: bool = True, n_jobs: int | None = None) -> list[Graph]:
    """Return the graphs of molecules, as inputs or outputs of an estimator.

    It takes about 0.2 ms per molecule with nine heavy atoms and process.

    Parameters
    ----------
    molecules : iterable of str or rdkit.Chem.Mol
        SMILES, or molecules of RDKit.
    kekulize : bool, default=True
        Whether aromatic bonds become single and double bonds (1 and 2). Otherwise they have the label "aromatic".
    n_jobs : int, default=None
        The number of processes that share the molecules, as in joblib.

    Returns
    -------
    list of Graph
        One graph per molecule.

    Raises
    ------
    ValueError
        If a molecule cannot be read; the message has its number.

    See Also
    --------
    molecule_graph : The graph of one molecule.

    Examples
    --------
    >>> from psilearn_chem import molecule_graphs
    >>> molecule_graphs(["CCO", "C=O"])
    [Graph(3 nodes, 2 edges), Graph(2 nodes, 1 edge)]
    """
    if isinstance(molecules, str) or not isinstance(molecules, Iterable):
        raise TypeError(f"molecules must be a sequence of SMILES or molecules; got {type(molecules).__name__}.")
    try:
        items = list(molecules)
    except TypeError as error:
        raise TypeError(f"molecules must be a sequence of SMILES or molecules; got {molecules!r:.80}.") from error
    starts = range(0, len(items), BLOCK_MOLECULES)
    tasks = (delayed(_graphs_of_block)(items[i : i + BLOCK_MOLECULES], i, kekulize) for i in starts)
    return list(chain.from_iterable(run_parallel(tasks, validation.check_n_jobs(n_jobs))))


def graph_to_smiles(graph: Graph) -> str | None:
    """Return the canonical SMILES of a graph of atoms and bonds.

    Parameters
    ----------
    graph : Graph
        A graph as :func:`molecule_graph` returns it: symbols of elements as labels of nodes, and 1, 2, 3 or "aromatic"
        as labels of edges.

    Returns
    -------
    str or None
        The SMILES with as many hydrogen atoms as the valences leave, or None if the graph is not a valid molecule
        without charges.

    See Also
    --------
    molecule_graph : The opposite direction.

    Examples
    --------
    >>> from psilearn_chem import graph_to_smiles, molecule_graph
    >>> graph_to_smiles(molecule_graph("OCC"))
    'CCO'
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a psilearn.kernels.graph.Graph; got {type(graph).__name__}.")
    types = {1: "SINGLE", 2: "DOUBLE", 3: "TRIPLE", AROMATIC: "AROMATIC"}
    molecule = Chem.RWMol()
    try:
        for label in graph.node_labels:
            molecule.AddAtom(Chem.Atom(label))  # type: ignore[call-overload]
        for i, j, label in graph.edges:
            molecule.AddBond(i, j, getattr(Chem.BondType, types[label]))
        Chem.SanitizeMol(molecule)
    except (KeyError, RuntimeError, TypeError, ValueError):  # unknown labels, valences that no atom has
        return None
    return str(Chem.MolToSmiles(molecule))


def _graphs_of_block(molecules: list[str | Mol], start: int, kekulize: bool) -> list[Graph]:
    """Return the graphs of molecules whose numbers in messages begin with ``start``."""
    graphs = []
    for i, molecule in enumerate(molecules, start):
        try:
            graphs.append(molecule_graph(molecule, kekulize=kekulize))
        except (TypeError, ValueError) as error:
            raise type(error)(f"molecules[{i}]: {error}") from error
    return graphs


def _order(bond: Any) -> int | str:
    return AROMATIC if bond.GetIsAromatic() else int(bond.GetBondTypeAsDouble())


VALENCES = {"B": 3, "Br": 1, "C": 4, "Cl": 1, "F": 1, "I": 1, "N": 3, "O": 2, "P": 5, "S": 6, "Si": 4}


class MoleculeEdits(GraphEdits):
    """The molecules that differ from a given one by one edit, for :func:`psilearn.decoding.local_search`.

    Molecules are graphs of :func:`molecule_graph` with kekulized bonds. Edited graphs are connected, and the orders of
    the bonds of an atom sum up to at most its valence: they are molecules without charges.

    Parameters
    ----------
    elements : sequence of str, default=("C", "N", "O", "F")
        The elements that atoms may get, of B, Br, C, Cl, F, I, N, O, P, S and Si.
    max_atoms : int, default=None
        The largest number of heavy atoms of an edited molecule. By default any number is allowed.

    See Also
    --------
    psilearn.decoding.local_search : Edit molecules while they come closer to a prediction.
    molecule_graph : The graph of a molecule.

    Examples
    --------
    >>> from psilearn_chem import MoleculeEdits, graph_to_smiles, molecule_graph
    >>> sorted(map(graph_to_smiles, MoleculeEdits("CO", max_atoms=2)(molecule_graph("CC"))))
    ['C', 'C#C', 'C=C', 'CO', 'CO']
    """

    def __init__(self, elements: Sequence[str] = ("C", "N", "O", "F"), *, max_atoms: int | None = None) -> None:
        is_list = isinstance(elements, str | list | tuple) and len(elements) > 0
        if not is_list or not all(isinstance(element, str) and element in VALENCES for element in elements):
            raise ValueError(f"elements must be some of {', '.join(VALENCES)}; got {elements!r:.80}.")
        limit = None if max_atoms is None else validation.check_count(max_atoms, "max_atoms")
        super().__init__(tuple(elements), (1, 2, 3), max_nodes=limit)
        self.elements = elements
        self.max_atoms = max_atoms

    def is_valid(self, node_labels: list[Hashable], edges: dict[tuple[int, int], Hashable]) -> bool:
        """Return whether no atom has more bonds than its valence.

        Parameters
        ----------
        node_labels : list of str
            The elements of the atoms.
        edges : dict of (int, int) to int
            The orders of the bonds, by their atoms.

        Returns
        -------
        bool
            Whether the sum of the orders of its bonds is at most the valence, for each atom.

        See Also
        --------
        psilearn.decoding.GraphEdits : Edits without valences.

        Examples
        --------
        >>> from psilearn_chem import MoleculeEdits
        >>> MoleculeEdits().is_valid(["C", "F"], {(0, 1): 2})
        False
        """
        try:
            return bool(min(self._room(node_labels, edges)) >= 0)
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # local searches call this at each step
            message = "node_labels must be a list of elements, and edges a dict of the orders of bonds"
            raise TypeError(f"{message}; got {node_labels!r:.80} and {edges!r:.80}.") from error

    def _room(self, labels: list[Hashable], edges: dict[tuple[int, int], Hashable]) -> list[float]:
        """Return the free valences of the atoms."""
        free = [VALENCES.get(label, 0) for label in labels]  # type: ignore[call-overload]
        for (i, j), order in edges.items():
            free[i] -= order
            free[j] -= order
        return free

    def _weight(self, edge_label: Hashable) -> float:
        """Return the order of a bond."""
        return edge_label  # type: ignore[return-value]
