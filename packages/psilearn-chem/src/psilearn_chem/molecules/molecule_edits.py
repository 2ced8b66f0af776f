"""All valid molecules that differ from a molecule by one edit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from psilearn.decoding import GraphEdits
from psilearn.utils import validation

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
        return min(self._room(node_labels, edges)) >= 0

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
