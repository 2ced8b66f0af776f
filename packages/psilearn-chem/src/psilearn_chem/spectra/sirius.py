"""SIRIUS ``.ms`` files: compounds with lines ">key value", and blocks of peaks at MS level 1 and 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psilearn_chem.spectra.records import Record
from psilearn_chem.spectra.text_files import shorten_error

FIELDS = {
    "compound": "compound_name",
    "parentmass": "precursor_mz",
    "ionization": "adduct",
    "ion": "adduct",
    "rt": "retention_time",
    "instrumentation": "instrument",
    "featureid": "feature_id",
}
MS1_BLOCKS = ("ms1", "ms1merged", "ms1peaks")
ENERGY_BLOCKS = ("collision", "ramp")
MS2_BLOCKS = ("ms2", "ms2merged", "ms2peaks", *ENERGY_BLOCKS)


def iter_sirius(lines: Iterable[str]) -> Iterator[Record]:
    """Yield one record per block of peaks at MS level 2; a compound without such a block yields an error."""
    compound = _Compound(0)
    for line in lines:
        stripped = line.strip()
        key, _, value = stripped.removeprefix(">").partition(" ")
        if stripped.startswith(">") and key.lower() == "compound":
            yield from compound.to_records()
            compound = _Compound(compound.number + 1)
        if stripped and not stripped.startswith("#"):
            compound.add_line(stripped, key.lower(), value.strip())
    yield from compound.to_records()


class _Compound:
    """The fields and blocks of a compound, while it is read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.fields: dict[str, object] = {}
        self.blocks: list[tuple[dict[str, object], list[tuple[str, str]]]] = []  # fields and peaks at level 2
        self.error: ValueError | None = None
        self._peaks: list[tuple[str, str]] | None = None  # of the block that is being read

    def add_line(self, line: str, key: str, value: str) -> None:
        """Add a line that is neither empty nor a comment."""
        if not line.startswith(">"):
            self._add_peak(line.split())
        elif key in MS1_BLOCKS:
            self._peaks = []  # not kept
        elif key in MS2_BLOCKS:
            self._peaks = []
            self.blocks.append(({"collision_energy": value} if key in ENERGY_BLOCKS else {}, self._peaks))
        elif key:
            self.fields.setdefault(FIELDS.get(key, key), value)

    def to_records(self) -> Iterator[Record]:
        """Yield the blocks with the fields of the compound, or the error in it."""
        position = f"compound {self.number}"
        blocks = [(fields, peaks) for fields, peaks in self.blocks if peaks]
        if self.error is None and not blocks and self.number:
            self.error = ValueError("it has no peaks at MS level 2, after >ms2 or >collision")
        if self.error is not None:
            yield Record(position, error=self.error)
            return
        for i, (fields, peaks) in enumerate(blocks, 1):
            where = position if len(blocks) == 1 else f"{position}, block {i}"
            mz, intensity = [peak[0] for peak in peaks], [peak[1] for peak in peaks]
            yield Record(where, mz, intensity, {**self.fields, **fields})

    def _add_peak(self, columns: list[str]) -> None:
        if self._peaks is not None and len(columns) >= 2:
            self._peaks.append((columns[0], columns[1]))
        elif self.error is None:
            reason = "has no intensity" if self._peaks is not None else "stands outside of any block of peaks"
            self.error = ValueError(shorten_error(ValueError(f"{' '.join(columns)!r:.80} {reason}")))
