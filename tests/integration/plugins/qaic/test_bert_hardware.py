"""BERT-base on the simulated device against a published run on a real card.

`docs/hardware-comparison.md` shows the same table; `pytest --update-golden` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from math import prod
from pathlib import Path

import numpy as np
import pytest

from opscope import api
from opscope.plugins.qaic.summary_text import read_opstats_text
from opscope.program.program import NO_ROUTE, Program
from opscope.recording.summary import DeviceSummary, KindRow
from opscope.simulation import Timeline, simulate
from opscope.zoo import Recipe, make
from support.plugins.qaic_published import rows, summary_text

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "hardware-comparison.md"
CORE = 0
LARGEST = 10
KB = 1024


@dataclass(frozen=True)
class Row:
    """A line of the comparison."""

    what: str
    simulated: float
    measured: float
    limit: str
    unit: str = ""

    @property
    def ratio(self) -> float:
        return self.simulated / self.measured

    def cells(self) -> str:
        form = ".1f" if self.unit == "%" else ",.0f"
        ours, real = (f"{value:{form}}{' %' if self.unit == '%' else ''}" for value in (self.simulated, self.measured))
        off = f"{self.simulated - self.measured:+.1f} points" if self.unit == "%" else f"{self.ratio:.2f}"
        return f"| {self.what} | {ours} | {real} | {off} | {self.limit} |"


@dataclass(frozen=True)
class Simulated:
    """The same figures of our own run."""

    program: Program
    timeline: Timeline

    def rows_of(self, group: str) -> np.ndarray:
        names = [g.name for g in self.program.groups]
        table = self.program.commands
        found: np.ndarray = (table["core"] == CORE) & (table["group"] == names.index(group))
        return found

    def utilisation(self, group: str) -> float:
        busy = (self.timeline.issue_end - self.timeline.start)[self.rows_of(group)].sum()
        return float(100 * busy / self.timeline.total_cycles)

    def of_kind(self, kind: str, column: str) -> float:
        table = self.program.commands
        if kind not in self.program.kinds:
            return 0.0
        mine = (table["core"] == CORE) & (table["kind"] == self.program.kinds.index(kind))
        return float(mine.sum() if column == "count" else table[column][mine].sum())


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    model = tmp_path_factory.mktemp("bert") / "bert.onnx"
    make(Recipe("bert-base", batch=8, sequence=128, precision="f16", weights=False), model)
    program = api.compile_model(model, "aic100-std", cores=2, stats_level=70).program
    return Simulated(program, simulate(program))


@pytest.fixture(scope="module")
def measured() -> DeviceSummary:
    return read_opstats_text(StringIO(summary_text()), source="published")


@pytest.fixture(scope="module")
def measured_read_kb() -> int:
    total = ("total", "DDR", "read")
    return next(int(row["kb"]) for row in rows("traffic") if (row["who"], row["traffic"], row["direction"]) == total)


def kinds(measured: DeviceSummary) -> list[KindRow]:
    rows = [row for row in measured.kinds if row.core == CORE and not row.is_wait and row.pcycles is not None]
    return sorted(rows, key=lambda row: -(row.pcycles or 0))


def utilisation(measured: DeviceSummary, group: str) -> float:
    rows = [row for row in measured.threads_of(CORE) if row.group == group]
    return sum(100 * (row.busy_pcycles or 0) / row.pcycles for row in rows) / len(rows)


def count(measured: DeviceSummary, group: str, *, barriers: bool = False) -> int:
    rows = [row for row in measured.kinds if row.core == CORE and row.group == group]
    return sum(row.count for row in rows if (row.kind == "barrier" if barriers else not row.is_wait))


def main_rows(simulated: Simulated, measured: DeviceSummary, read_kb: int) -> list[Row]:
    ours = sum(row.read for row in simulated.program.metrics.traffic) / KB
    total = Row("core cycles of the inference", simulated.timeline.total_cycles, measured.core_pcycles(CORE), "15 %")
    used = [
        Row(f"{group} utilisation", simulated.utilisation(group), utilisation(measured, group), "8 points", "%")
        for group in ("HMX", "HVX")
    ]
    return [total, *used, Row("DDR read, KB", ours, read_kb, "10 %")]


def kind_rows(simulated: Simulated, measured: DeviceSummary) -> list[Row]:
    return [
        Row(f"`{row.kind.strip()}`, pcycles", simulated.of_kind(row.kind.strip(), "cycles"), row.pcycles or 0, "30 %")
        for row in kinds(measured)[:LARGEST]
    ]


def count_rows(simulated: Simulated, measured: DeviceSummary) -> list[Row]:
    rows = [
        Row(f"commands of {group}", float(simulated.rows_of(group).sum()), count(measured, group), "factor of 3")
        for group in ("HMX", "HVX", "DMAIssue")
    ]
    computing = simulated.rows_of("HVX") & (simulated.program.commands["route"] == NO_ROUTE)
    barriers = count(measured, "HVX", barriers=True)
    return [*rows, Row("barriers of HVX", float(computing.sum()), barriers, "factor of 3")]


def unmatched_rows(simulated: Simulated, measured: DeviceSummary) -> list[Row]:
    """What no limit is set for, with the reason on the page."""
    conv = next(row for row in kinds(measured) if row.kind.strip() == "aicconvolutiond32")
    broadcast = next(row for row in kinds(measured) if row.kind.strip() == "aicbroadcastadd")
    copied = sum(row.count for row in measured.kinds if row.core == CORE and row.kind.startswith("aiccopysamevtcm"))
    written = sum(row.write for row in simulated.program.metrics.traffic) / KB
    return [
        Row(
            "output of `aicconvolutiond32`, KB",
            simulated.of_kind("aicconvolutiond32", "out_bytes") / KB,
            conv.out_kb or 0,
            "none",
        ),
        Row("count of `aicconvolutiond32`", simulated.of_kind("aicconvolutiond32", "count"), conv.count, "none"),
        Row("count of `aicbroadcastadd`", simulated.of_kind("aicbroadcastadd", "count"), broadcast.count, "none"),
        Row("copies inside VTCM", simulated.of_kind("aiccopysamevtcm", "count"), copied, "none"),
        Row("DDR written, KB", written, 1729, "none"),
        Row("core cycles of starts of HVX, on the card of barriers", _starts(simulated), _barriers(measured), "none"),
    ]


def _starts(simulated: Simulated) -> float:
    """Core cycles that starting the commands of the vector engine takes."""
    table, bounds = simulated.program.commands, simulated.program.bounds
    assert bounds is not None
    (launch,) = {unit.launch_cycles for unit in bounds.units if unit.name.startswith("HVX")}
    return float(((table["route"] == NO_ROUTE) & simulated.rows_of("HVX")).sum() * launch)


def _barriers(measured: DeviceSummary) -> float:
    """Core cycles in the vector engine's barriers, which is where the card has them."""
    (ticks,) = (r.ucycles for r in measured.kinds if (r.core, r.group, r.kind) == (CORE, "HVX", "barrier"))
    window = next(thread for thread in measured.threads_of(CORE))
    return ticks * window.pcycles / (window.end - window.start)


def _without_starts(simulated: Simulated) -> float:
    return simulated.utilisation("HVX") - 100 * _starts(simulated) / simulated.timeline.total_cycles


def test_total_device_time_is_within_15_percent(simulated, measured, measured_read_kb) -> None:
    assert main_rows(simulated, measured, measured_read_kb)[0].ratio == pytest.approx(1, abs=0.15)


def test_utilisation_is_within_8_points(simulated, measured, measured_read_kb) -> None:
    for row in main_rows(simulated, measured, measured_read_kb)[1:3]:
        assert row.simulated == pytest.approx(row.measured, abs=8), row.what


def test_ddr_read_is_within_10_percent(simulated, measured, measured_read_kb) -> None:
    assert measured_read_kb == 168941
    assert main_rows(simulated, measured, measured_read_kb)[3].ratio == pytest.approx(1, abs=0.10)


def test_the_ten_largest_op_kinds_are_within_30_percent(simulated, measured) -> None:
    rows = kind_rows(simulated, measured)
    assert len(rows) == LARGEST
    assert rows[0].what == "`aicconvolutiond32`, pcycles"
    assert {row.what: row.ratio for row in rows if abs(row.ratio - 1) > 0.30} == {}


def test_counts_are_of_the_same_order(simulated, measured) -> None:
    rows = count_rows(simulated, measured)
    assert {row.what: row.ratio for row in rows if not 1 / 3 <= row.ratio <= 3} == {}


HEADER = "| figure | simulated | measured | simulated ÷ measured | limit in the test |\n|---|---|---|---|---|"


def page(simulated: Simulated, measured: DeviceSummary, read_kb: int) -> str:
    def table(rows: list[Row]) -> str:
        return "\n".join([HEADER, *(row.cells() for row in rows)])

    return f"""\
# The simulated device against real hardware

BERT-base, batch 8, sequence 128, f16, on two cores of a Cloud AI 100 Standard: `opscope` compiles and simulates it,
and the vendor's profiler tutorial (quic/cloud-ai-sdk) prints what the card took. Figures are of core 0 where cores
differ. Written by `pytest tests/integration/plugins/qaic/test_bert_hardware.py --update-golden`, checked by the same
test.

```sh
opscope zoo bert-base --batch 8 --seq 128 --precision f16 --no-weights -o bert.onnx
opscope compile bert.onnx --target aic100-std --cores 2 --stats-level 70 -o build
```

{table(main_rows(simulated, measured, read_kb))}

The ten op kinds that take most core cycles:

{table(kind_rows(simulated, measured))}

Counts:

{table(count_rows(simulated, measured))}

## What this shows, and what it does not

This is the run that most figures of the target file were taken from: cycles per KB of output of the HVX kernels and
layout conversions, the busy rate and launch costs of the engines, the issue cost of transfers, the sizes of
tiles, the clock. So it is no independent test of those figures. The pcycles of an op kind show that the compiler makes
the same amount of that work, not that a rate was predicted; counts follow from that work and the tile sizes;
utilisations are that work over the total. What the comparison does test is how much work the compiler makes of the
network, how many bytes it reads, and how the engines overlap and wait for each other, which gives the total. No second
published run has been compared in this way.

The networks are not identical either: the outputs of the model on the card are 4 KB; the zoo's BERT ends with its
hidden states and a pooler, {_output_kb(simulated):,.0f} KB.

## What is not matched

{table(unmatched_rows(simulated, measured))}

- Products on the card report almost five times the output bytes that the network's products have, in more commands.
  We do not know why; partial sums of products that are cut along the reduced axis would explain it. Ours are cut along
  channels or rows only.
- Starting a command is part of its op here. Its cost was taken from the barriers of the card, whose op rows do not have
  it: without their starts, the kinds above that run on the HVX are within 4 % of the card, and the HVX is
  {_without_starts(simulated):.1f} % busy. Threads of ours wait for each other in barriers beside that, for one to two
  percent of the time, which the barriers of the card have in them already.
- Additions with broadcasting run in larger pieces on the card, and it copies inside VTCM, which ours never does.
- The card writes nothing but its stats buffer to DDR. Ours are the stats buffer, the outputs, and
  {_spilled(simulated):,.0f} KB of activations that do not fit VTCM for a while.
- The two cores of the card ran at 1233.12 and 1243.97 MHz; the simulated clocks differ by a seeded amount.
"""


def _output_kb(simulated: Simulated) -> float:
    return sum(2 * prod(shape) for _, _, shape in simulated.program.outputs) / KB


def _spilled(simulated: Simulated) -> float:
    program = simulated.program
    writes = [number for number, route in enumerate(program.routes) if route.carries == "write"]
    table = program.commands
    return float(table["moved_bytes"][np.isin(table["route"], writes) & (table["op"] >= 0)].sum() / KB)


def test_the_page_shows_this_comparison(request, simulated, measured, measured_read_kb) -> None:
    text = page(simulated, measured, measured_read_kb)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    assert PAGE.read_text(encoding="utf-8") == text
