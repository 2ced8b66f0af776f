"""Fragments of a molecule by breaking bonds, and how well they explain the peaks of a spectrum.

A cut breaks one bond outside of rings, or two bonds of one ring, and leaves two connected parts. The fragments are the
parts of up to two cuts. The cost of a cut is the number of broken bonds, in which a double bond counts twice; that of a
fragment is the sum over its cuts. A fragment may also lose or gain hydrogen.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psilearn.chem._optional import import_rdkit

Array = NDArray[np.float64]

PROTON_MASS = 1.007276466
HYDROGEN_MASS = 1.00782503207
MAX_ATOMS = 63  # a set of atoms is a number of 64 bits; larger molecules have no fragments
MAX_CUTS = 400  # parts that are intersected; those of the cheapest cuts
MAX_HYDROGENS = 2  # lost or gained besides those of the atoms
HYDROGEN_COST = 0.4  # per lost or gained hydrogen
TRIPLE = 2.5  # bonds of a higher order are not broken
RING_COST = 0.5  # of a cut through a ring, besides half of each bond order


class Fragments(NamedTuple):
    """The masses of the fragments of a molecule, ascending, and their costs."""

    masses: Array  # (f,)  in Da, of the neutral parts with their hydrogens
    costs: Array  # (f,)


class _Bond(NamedTuple):
    first: int
    second: int
    order: float
    in_ring: bool


def fragment_molecule(smiles: str) -> Fragments:
    """Return the fragments of a molecule; none if it cannot be parsed or has more than 63 heavy atoms.

    Cost: about 1 ms for 25 heavy atoms.
    """
    import_rdkit()
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or not 0 < molecule.GetNumAtoms() <= MAX_ATOMS:
        return Fragments(np.empty(0), np.empty(0))
    table = Chem.GetPeriodicTable()
    masses = np.array(
        [
            table.GetMostCommonIsotopeMass(atom.GetAtomicNum()) + HYDROGEN_MASS * atom.GetTotalNumHs()
            for atom in molecule.GetAtoms()
        ]
    )
    bonds = [
        _Bond(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), bond.GetBondTypeAsDouble(), bond.IsInRing())
        for bond in molecule.GetBonds()
    ]
    rings = [tuple(ring) for ring in molecule.GetRingInfo().BondRings()]
    parts, costs = _intersect(_find_parts(len(masses), bonds, rings))
    members = np.unpackbits(parts.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")[:, : len(masses)]
    fragment_masses = members @ masses
    order = np.argsort(fragment_masses, kind="stable")
    return Fragments(fragment_masses[order], costs[order])


def _find_parts(n_atoms: int, bonds: list[_Bond], rings: list[tuple[int, ...]]) -> dict[int, float]:
    """Return the parts of one cut as sets of atoms, each with its smallest cost; the whole molecule costs nothing."""
    neighbors = [0] * n_atoms
    for bond in bonds:
        neighbors[bond.first] |= 1 << bond.second
        neighbors[bond.second] |= 1 << bond.first
    cuts = [([bond], bond.order) for bond in bonds if not bond.in_ring and bond.order < TRIPLE]
    for ring in rings:
        for i, j in combinations(ring, 2):
            cuts.append(([bonds[i], bonds[j]], (bonds[i].order + bonds[j].order) / 2 + RING_COST))
    whole = (1 << n_atoms) - 1
    parts = {whole: 0.0}
    for broken, cost in cuts:
        part = _grow(neighbors, broken)
        for atoms in (part, whole & ~part) if part != whole else ():
            parts[atoms] = min(cost, parts.get(atoms, np.inf))
    return parts


def _grow(neighbors: list[int], broken: list[_Bond]) -> int:
    """Return the atoms that are connected with the first one when bonds are broken."""
    reduced = dict.fromkeys(atom for bond in broken for atom in bond[:2])
    links = {atom: neighbors[atom] for atom in reduced}
    for bond in broken:
        links[bond.first] &= ~(1 << bond.second)
        links[bond.second] &= ~(1 << bond.first)
    reached = frontier = 1
    while frontier:
        lowest = frontier & -frontier
        atom = lowest.bit_length() - 1
        new = links.get(atom, neighbors[atom]) & ~reached
        reached |= new
        frontier = (frontier ^ lowest) | new
    return reached


def _intersect(parts: dict[int, float]) -> tuple[NDArray[np.uint64], Array]:
    """Return the different intersections of two parts, each with its smallest sum of costs."""
    atoms, costs = np.array(list(parts), dtype=np.uint64), np.array(list(parts.values()))
    cheapest = np.argsort(costs, kind="stable")[:MAX_CUTS]
    atoms, costs = atoms[cheapest], costs[cheapest]
    i, j = np.triu_indices(len(atoms))
    both, sums = atoms[i] & atoms[j], costs[i] + np.where(i == j, 0.0, costs[j])
    order = np.lexsort((sums, both))
    both, sums = both[order], sums[order]
    first = np.flatnonzero((both > 0) & np.append(True, both[1:] != both[:-1]))
    return both[first], sums[first]


def explanation_costs(mz: Array, fragments: Fragments, *, negative: bool, ppm: float = 10.0) -> Array:
    """Return the smallest cost of a fragment at each peak, as a singly charged ion; ∞ where there is none.

    The tolerance is ``ppm`` of the m/z, but at least 2 mDa.
    """
    best = np.full(len(mz), np.inf)
    if not len(fragments.masses):
        return best
    neutral = mz + PROTON_MASS if negative else mz - PROTON_MASS
    tolerance = np.maximum(1e-6 * ppm * mz, 0.002)
    for n_hydrogens in range(-MAX_HYDROGENS, MAX_HYDROGENS + 1):
        target = neutral - n_hydrogens * HYDROGEN_MASS
        first = np.searchsorted(fragments.masses, target - tolerance)
        last = np.searchsorted(fragments.masses, target + tolerance, side="right")
        extra = HYDROGEN_COST * abs(n_hydrogens)
        for peak in np.flatnonzero(last > first):
            cost = fragments.costs[first[peak] : last[peak]].min() + extra
            best[peak] = min(best[peak], cost)
    return best
