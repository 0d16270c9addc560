"""Times of kernels, inference by inference on the CPU of this machine → rows of ops and kernels, lane, metrics.

Every runtime that measures here ends with the same table, kernel × inference → ns; what it calls its kernels, and which
op of the model each belongs to, is its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.columns import Flags, Numbers
from ..core.meaning import Does
from ..core.provenance import Provenance
from ..graph.graph import Op
from ..graph.kinds import what_kind_does
from ..recording.recording import KernelTotal, Metric, OpRecord, Placed, Recording, Value
from ..recording.summary import LaneTotal
from .host_cpu import CPU, busy_and_idle, cpu_machine, spread
from .measuring import Measuring

ENGINE = "CPU"  # the one lane that kernels run on


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """What the runtime's profiler says of the inferences that count."""

    names: tuple[str, ...]  # of every kernel, as the runtime calls it
    kernel_ns: Numbers  # kernel × inference
    whole_ns: Numbers  # per inference
    called: Flags  # kernels that the profile has; the time of another is unknown

    def op_row(
        self,
        name: str,
        type_: str,
        placed: Placed,
        kernels: Sequence[int],
        *,
        kind: str = "",
        reason: str = "",
        covers: tuple[str, ...] = (),
    ) -> OpRecord:
        """The row of an op that these kernels ran for: the sum of their times in each inference, then its median."""
        places = list(kernels)
        known = bool(self.called[places].any())
        middle, low, high = spread(self.kernel_ns[places].sum(axis=0)) if known else (None, None, None)
        whole = float(np.median(self.whole_ns))
        return OpRecord(
            name=name,
            type=type_,
            kind=kind,
            does=what_measured_does(kind),
            placed=placed,
            reason=reason,
            covers=covers,
            calls=len(places),
            time_ns=middle,
            low_ns=low,
            high_ns=high,
            path_ns=middle,
            path_share=None if middle is None or not whole else middle / whole,
            engines=(ENGINE,),
            on_cpu=True,
        )

    def totals(self) -> tuple[KernelTotal, ...]:
        """One row per name of a kernel, the longest first."""
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            groups.setdefault(name, []).append(place)
        rows = [
            KernelTotal(name, ENGINE, len(places), time_ns=spread(self.kernel_ns[places].sum(axis=0))[0])
            for name, places in groups.items()
        ]
        return tuple(sorted(rows, key=lambda row: (-(row.time_ns or 0), row.name)))

    def lane(self) -> LaneTotal:
        """The CPU in the inference that the latency is of: in kernels, and between them."""
        return busy_and_idle(ENGINE, self.kernel_ns.sum(axis=0), self.whole_ns)

    def share_in_kernels(self, name: str) -> Metric:
        """The share of an inference's time that its kernels take."""
        inside = self.kernel_ns.sum(axis=0) / np.maximum(self.whole_ns, 1)
        note = "the rest is the runtime's own"
        return Metric(name, float(np.median(inside)), "share", Provenance.MEASURED, note)


def watched_note(
    times: KernelTimes, samples_ns: Sequence[int], *, rows: str, profiler: str = "the runtime's profiler"
) -> str:
    """What the latency and its shares are of. `rows`: what the runtime calls its ops."""
    extra = float(np.median(times.whole_ns)) / float(np.median(samples_ns)) - 1
    return (
        f"times of {rows} and the latency that they are shares of are of inferences that {profiler} watched: "
        f"{extra:+.1%} against those without it"
    )


def what_measured_does(kind: str) -> Does:
    """What an op of a kind did while it was measured: the time of a branch or a loop is that of its body."""
    does = what_kind_does(kind)
    return Does.MIXED if does is Does.SYNC else does


def no_kernel(op: Op, placed: Placed, reason: str) -> OpRecord:
    """The row of an op that no kernel ran for."""
    does = what_measured_does(op.kind)
    return OpRecord(op.name, op.type, op.kind, does=does, placed=placed, reason=reason, calls=0)


def in_body(op: Op) -> OpRecord:
    """The row of an op of a control-flow body: its time is part of the op that the body belongs to."""
    return no_kernel(op, Placed.FUSED, f"in the body of {op.scope}, and counted there")


def placed_counts(
    ops: Sequence[OpRecord], names: Mapping[str, Placed], provenance: Provenance = Provenance.MEASURED
) -> Iterator[Metric]:
    """How many ops were placed so, under the name that the runtime's users know."""
    for name, placed in names.items():
        yield Metric(name, sum(op.placed == placed for op in ops), "count", provenance)


def random_inputs_note(measuring: Measuring) -> str:
    """What the inputs were: times may depend on values."""
    return f"inputs are random (seed {measuring.seed}); times of ops whose work depends on values are of these"


def cpu_recording(
    maker: str, model: Path, measuring: Measuring, *, options: Mapping[str, Value], producer: Mapping[str, str]
) -> Recording:
    """A measurement on this machine, before what it found: model, machine and choices."""
    return Recording(
        maker=maker,
        provenance=Provenance.MEASURED,
        model=str(model),
        network=model.stem,
        target=CPU,
        machine=cpu_machine(measuring),
        options={**options, **measuring.shown()},
        producer=producer,
        devices=1,
        cores=1,
    )
