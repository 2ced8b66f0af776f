"""Counters of requests in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


class RequestMetrics:
    """Numbers and times of the requests of one process, by the template of their path, never by what they contain."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests[method, path, status] += 1
        self._seconds[path] += seconds  # type: ignore[assignment]  # a Counter of floats
        times = self._times.setdefault(path, [0] * (len(BUCKETS) + 1))
        times[bisect_left(BUCKETS, seconds)] += 1

    def to_text(self, numbers: Mapping[str, float]) -> str:
        """Return all counters, and further numbers by their name."""
        lines = ["# TYPE psilearn_requests_total counter"]
        for (method, path, status), count in sorted(self._requests.items()):
            lines.append(f'psilearn_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}')
        lines.append("# TYPE psilearn_request_seconds histogram")
        for path, times in sorted(self._times.items()):
            total = 0
            for limit, count in zip([*map(str, BUCKETS), "+Inf"], times, strict=True):
                total += count
                lines.append(f'psilearn_request_seconds_bucket{{path="{path}",le="{limit}"}} {total}')
            lines.append(f'psilearn_request_seconds_sum{{path="{path}"}} {self._seconds[path]:.6f}')
            lines.append(f'psilearn_request_seconds_count{{path="{path}"}} {total}')
        for name, number in numbers.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# TYPE psilearn_{name} {kind}", f"psilearn_{name} {number:g}"]
        return "\n".join(lines) + "\n"
