"""Fragments of a molecule by breaking bonds, and how well they explain the peaks of a spectrum.

A cut breaks one bond outside of rings, or two bonds of one ring, and leaves two connected parts. The fragments are the
parts of up to two cuts. The cost of a cut is the number of broken bonds, in which a double bond counts twice; that of a
fragment is the sum over its cuts. A fragment may also lose or gain hydrogen.

If M has one row per part, with ones at its atoms, and m are the masses of the atoms, then M diag(m) Mᵀ has the masses
of all intersections of two parts. Masses are rounded to multiples of 2⁻³⁰ Da and costs are multiples of ¼, so that both
fit into one number without rounding, and one sort finds the smallest cost of each mass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, chain
from operator import or_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem

Array = NDArray[np.float64]

PROTON_MASS = 1.007276466
HYDROGEN_MASS = 1.00782503207
MAX_ATOMS = 63  # a set of atoms is a number of 64 bits; larger molecules have no fragments
MAX_CUTS = 400  # parts that are intersected; those of the cheapest cuts
MAX_HYDROGENS = 2  # lost or gained besides those of the atoms
HYDROGEN_COST = 0.4  # per lost or gained hydrogen
TRIPLE = 2.5  # bonds of a higher order are not broken
RING_COST = 0.5  # of a cut through a ring, besides half of each bond order
MASS_UNITS = 2**30  # per Da: 63 atoms have less than 2⁴⁵ units
COST_UNITS = 4  # per bond; bond orders are multiples of ½
COST_BITS = 8  # two cuts cost less than 2⁸ units


class Fragments(NamedTuple):
    """The different masses of the fragments of a molecule, ascending, and the smallest cost of each."""

    masses: Array  # (f,)  in Da, of the neutral parts with their hydrogens
    costs: Array  # (f,)


class _Bond(NamedTuple):
    first: int
    second: int
    order: float


_Ring = tuple[tuple[int, ...], tuple[int, ...]]  # its bonds and its atoms, in the order around the ring


def fragment_molecule(smiles: str) -> Fragments:
    """Return the fragments of a molecule; none if it cannot be parsed or has more than 63 heavy atoms.

    Cost: about 0.8 ms for 25 heavy atoms.
    """
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or not 0 < molecule.GetNumAtoms() <= MAX_ATOMS:
        return Fragments(np.empty(0), np.empty(0))
    atoms = map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))  # faster than GetAtoms
    masses = np.array([_isotope_mass(atom.GetAtomicNum()) + HYDROGEN_MASS * atom.GetTotalNumHs() for atom in atoms])
    bonds = [
        _Bond(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), bond.GetBondTypeAsDouble())
        for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    ]
    info = molecule.GetRingInfo()
    rings = list(zip(info.BondRings(), info.AtomRings(), strict=True))
    return _intersect(_find_parts(len(masses), bonds, rings), masses)


@cache
def _isotope_mass(atomic_number: int) -> float:
    return float(Chem.GetPeriodicTable().GetMostCommonIsotopeMass(atomic_number))


def _find_parts(n_atoms: int, bonds: list[_Bond], rings: list[_Ring]) -> dict[int, float]:
    """Return the parts of one cut as sets of atoms, each with its smallest cost; the whole molecule costs nothing."""
    neighbors = [0] * n_atoms
    for first, second, _ in bonds:
        neighbors[first] |= 1 << second
        neighbors[second] |= 1 << first
    whole = (1 << n_atoms) - 1
    parts = {whole: 0.0}
    in_rings = {bond for ring, _ in rings for bond in ring}
    chains = [bond for i, bond in enumerate(bonds) if i not in in_rings]
    ring_cuts = (_cut_ring(neighbors, [bonds[i].order for i in ring], atoms) for ring, atoms in rings)
    cuts = chain(_cut_bonds(neighbors, chains), *ring_cuts)
    for part, cost in cuts:
        for atoms in (part, whole ^ part):
            if cost < parts.get(atoms, np.inf):
                parts[atoms] = cost
    return parts


def _cut_bonds(neighbors: list[int], bonds: list[_Bond]) -> Iterator[tuple[int, float]]:
    """Yield one side of each of these bonds outside of rings, and the cost: the subtree below it in a spanning tree."""
    parents, order = _span(neighbors)
    below = [1 << atom for atom in range(len(neighbors))]
    for atom in reversed(order):
        if parents[atom] >= 0:
            below[parents[atom]] |= below[atom]
    for first, second, order_of_bond in bonds:
        if order_of_bond < TRIPLE:
            yield below[second if parents[second] == first else first], order_of_bond


def _span(neighbors: list[int]) -> tuple[list[int], list[int]]:
    """Return the parent of each atom in spanning trees, −1 for roots, and all atoms with parents before children."""
    parents, order, remaining = [-1] * len(neighbors), [], (1 << len(neighbors)) - 1
    while remaining:
        root = (remaining & -remaining).bit_length() - 1
        stack = [root]
        remaining &= ~(1 << root)
        while stack:
            atom = stack.pop()
            order.append(atom)
            new = neighbors[atom] & remaining
            remaining &= ~new
            while new:
                lowest = new & -new
                child = lowest.bit_length() - 1
                parents[child] = atom
                stack.append(child)
                new ^= lowest
    return parents, order


def _cut_ring(neighbors: list[int], orders: list[float], atoms: tuple[int, ...]) -> Iterator[tuple[int, float]]:
    """Yield one side of each pair of bonds of a ring that separates its atoms, and the cost.

    ``orders`` has the orders of the bonds around the ring; bond i connects atoms i and i + 1 of ``atoms``.
    """
    links = {
        atom: neighbors[atom] & ~(1 << before | 1 << after)
        for before, atom, after in zip((atoms[-1], *atoms), atoms, (*atoms[1:], atoms[0]), strict=False)
    }
    groups = [_grow(neighbors, links, atom) if links[atom] else 1 << atom for atom in (*atoms[1:], atoms[0])]
    before = [0, *accumulate(groups, or_)]  # groups: what remains at the end of each bond without the ring
    after = [*reversed([*accumulate(reversed(groups), or_)]), 0]
    for i, first in enumerate(orders):
        side = 0
        for j in range(i + 1, len(orders)):
            side |= groups[j - 1]
            if not side & (before[i] | after[j]):  # else another ring connects both sides
                yield side, (first + orders[j]) / 2 + RING_COST


def _grow(neighbors: list[int], links: dict[int, int], atom: int) -> int:
    """Return the atoms that are connected with an atom; ``links`` has the neighbors of atoms that lost a bond."""
    reached = frontier = 1 << atom
    while frontier:
        lowest = frontier & -frontier
        atom = lowest.bit_length() - 1
        new = links.get(atom, neighbors[atom]) & ~reached
        reached |= new
        frontier = (frontier ^ lowest) | new
    return reached


def _intersect(parts: dict[int, float], atom_masses: Array) -> Fragments:
    """Return the intersections of two parts, each mass with its smallest sum of costs."""
    atoms, costs = np.fromiter(parts, np.uint64, len(parts)), np.fromiter(parts.values(), np.float64, len(parts))
    cheapest = np.argsort(costs, kind="stable")[:MAX_CUTS]
    atoms, costs = atoms[cheapest], COST_UNITS * costs[cheapest]
    members = np.unpackbits(atoms.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")[:, : len(atom_masses)]
    members = members.astype(np.float64)
    units = np.rint(MASS_UNITS * atom_masses) * 2**COST_BITS
    keys = (members * units) @ members.T  # exact: integers below 2⁵³
    keys += costs[:, None] + costs
    keys.flat[:: len(keys) + 1] -= costs  # a part with itself is one cut
    sorted_keys = np.sort(keys[np.tri(len(keys), dtype=bool)].astype(np.int64))
    units_of_mass = sorted_keys >> COST_BITS
    is_first = np.append(units_of_mass[0] > 0, units_of_mass[1:] != units_of_mass[:-1])  # 0: no atoms in common
    return Fragments(units_of_mass[is_first] / MASS_UNITS, (sorted_keys[is_first] & (2**COST_BITS - 1)) / COST_UNITS)


def explanation_costs(mz: Array, fragments: Fragments, *, negative: bool, ppm: float = 10.0) -> Array:
    """Return the smallest cost of a fragment at each peak, as a singly charged ion; ∞ where there is none.

    The tolerance is ``ppm`` of the m/z, but at least 2 mDa.
    """
    return explanation_costs_of(mz, [fragments], negative=negative, ppm=ppm)[0]


def explanation_costs_of(mz: Array, molecules: Sequence[Fragments], *, negative: bool, ppm: float = 10.0) -> Array:
    """Return :func:`explanation_costs` for several molecules at once, of shape (molecules, peaks)."""
    neutral = mz + PROTON_MASS if negative else mz - PROTON_MASS
    tolerance = np.maximum(1e-6 * ppm * mz, 0.002)
    n_hydrogens = np.arange(-MAX_HYDROGENS, MAX_HYDROGENS + 1)
    target = neutral - HYDROGEN_MASS * n_hydrogens[:, None]  # (hydrogens, peaks)
    sizes = np.array([len(part.masses) for part in molecules])
    starts = (np.cumsum(sizes) - sizes)[:, None, None]
    first = np.stack([np.searchsorted(part.masses, target - tolerance) for part in molecules])
    last = np.stack([np.searchsorted(part.masses, target + tolerance, side="right") for part in molecules])
    found = np.full(first.shape, np.inf)  # (molecules, hydrogens, peaks)
    explained = last > first
    if explained.any():
        costs = np.concatenate([*(part.costs for part in molecules), [np.inf]])  # a range may end behind the last one
        ranges = np.stack([(starts + first)[explained], (starts + last)[explained]], axis=1).ravel()
        found[explained] = np.minimum.reduceat(costs, ranges)[::2]  # every other range is between two peaks
    return np.asarray((found + HYDROGEN_COST * np.abs(n_hydrogens)[:, None]).min(axis=1))
