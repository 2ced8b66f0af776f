"""The power of a GPU as ``nvidia-smi`` reports it, sampled while other work runs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from threading import Thread
from time import perf_counter
from types import TracebackType
from typing import IO, Self

NVIDIA_SMI = ("nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits", "--id=0", "--loop-ms=100")


class PowerMeter:
    """Collects watts in a ``with`` block: one number per line that a command prints.

    Without that command, as on a machine without a GPU, there are no samples.
    """

    def __init__(self, command: Sequence[str] = NVIDIA_SMI) -> None:
        self.command = command
        self._samples: list[tuple[float, float]] = []  # time and watts
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            return self
        assert self._process.stdout is not None
        self._reader = Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._reader.join()

    def mean_watts(self, start: float, end: float) -> float | None:
        """Return the mean of the samples between two times of ``perf_counter``; None if there is none."""
        watts = [value for time, value in self._samples if start <= time <= end]
        return sum(watts) / len(watts) if watts else None

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            try:
                self._samples.append((perf_counter(), float(line)))
            except ValueError:  # "[N/A]": this GPU does not report its power
                continue
