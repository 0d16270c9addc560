"""What has to be known before totals of runs are set against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .figures import Figures


def caveats_of(runs: Sequence[Figures]) -> Iterator[str]:
    """Each once, with the runs that it is true of."""
    for caveat in dict.fromkeys(caveat for run in runs for caveat in run.caveats):
        labels = dict.fromkeys(run.label for run in runs if caveat in run.caveats)
        yield f"{', '.join(labels)}: {caveat}"
