"""What a page is given: the one description of it. The types of the page's script are made from its JSON Schema."""

from __future__ import annotations

import json
from typing import Literal

import msgspec

from ...program.program import OpInfo
from ...recording.finding import Findings
from ...recording.resources import Resources
from ...recording.run import RunInfo
from ...recording.summary import Summary

SCHEMA: Literal["opscope.page/1"] = "opscope.page/1"
COMPARE_SCHEMA: Literal["opscope.compare-page/1"] = "opscope.compare-page/1"
STORE_SCHEMA: Literal["opscope.store-page/1"] = "opscope.store-page/1"
BAKEOFF_SCHEMA: Literal["opscope.bakeoff-page/1"] = "opscope.bakeoff-page/1"
CALIBRATION_SCHEMA: Literal["opscope.calibration-page/1"] = "opscope.calibration-page/1"


class Producer(msgspec.Struct, frozen=True):
    name: str
    version: str


class PageLane(msgspec.Struct, frozen=True):
    """A row of the timeline; its spans are the rows `first` to `first + rows` of all pieces together."""

    device: int
    core: int
    name: str
    thread: int
    first: int
    rows: int


class PageCounter(msgspec.Struct, frozen=True):
    """A counter; its samples are the rows `first` to `first + rows` of the block `counters`."""

    device: int
    core: int
    name: str
    unit: str
    first: int
    rows: int


class PageSpans(msgspec.Struct, frozen=True):
    """Where the spans are and how much was put together."""

    spans: int  # in the run
    rows: int  # in the page
    window_ns: int  # spans that start within so many ns on a lane are one row; 0: every span has its own
    piece_rows: int
    pieces: int
    end_ns: int  # of the last span or sample
    served: Served | None


class Served(msgspec.Struct, frozen=True):
    """Every span, in pieces under the page's own address: `spans/<number>.bin`."""

    rows: int
    pieces: int
    lane_first: tuple[int, ...]


class CommandWords(msgspec.Struct, frozen=True):
    """Words that the numbers of the block `commands` stand for."""

    rows: int
    groups: tuple[str, ...]
    routes: tuple[str, ...]
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    memories: tuple[str, ...]
    types: tuple[str, ...]
    shapes: tuple[str, ...]
    operands: tuple[tuple[str, ...], ...]
    attributes: tuple[str, ...]


class PathWords(msgspec.Struct, frozen=True):
    """Words that the numbers of the block `path` stand for."""

    rows: int
    causes: tuple[str, ...]
    after: tuple[str, ...]


class PageGraph(msgspec.Struct, frozen=True):
    """Data that flows from op to op: of the graph, else as far as the commands tell."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]


class PageData(msgspec.Struct, frozen=True):
    """A Run for its page. Tables of numbers are in blocks beside it: `spans-0` …, `commands`, `edges`, …"""

    schema: Literal["opscope.page/1"]
    producer: Producer
    info: RunInfo
    summary: Summary
    findings: Findings | None  # without its path: block `path`
    ops: tuple[OpInfo, ...]
    lanes: tuple[PageLane, ...]
    counters: tuple[PageCounter, ...]
    names: tuple[str, ...]
    spans: PageSpans
    commands: CommandWords | None
    path: PathWords | None
    graph: PageGraph
    resources: Resources | None  # None: nobody made a resource report of the run
    notes: tuple[str, ...]  # what was left out, and where it is


class ComparedRun(msgspec.Struct, frozen=True):
    label: str
    info: RunInfo
    summary: Summary


class ComparedCheck(msgspec.Struct, frozen=True):
    """One limit of a gate."""

    name: str
    passed: bool
    reason: str


class ComparedPart(msgspec.Struct, frozen=True):
    """A part of the change of latency."""

    name: str
    how: str
    ns: float


class ComparedOp(msgspec.Struct, frozen=True):
    """An op, or ops that became others, in both runs."""

    name: str
    type: str
    how: str  # they were found to be the same
    base_ns: float | None
    new_ns: float | None
    change_ns: float | None


class ComparedFamily(msgspec.Struct, frozen=True):
    """Ops of one type: what was predicted of them, and what was measured."""

    name: str
    ops: int
    predicted_ns: float
    measured_ns: float


class Compared(msgspec.Struct, frozen=True):
    """What a comparison of the first with the last run says."""

    verdict: str
    checks: tuple[ComparedCheck, ...]
    change_ns: float | None
    parts: tuple[ComparedPart, ...]
    ops: tuple[ComparedOp, ...]  # largest change first
    families: tuple[ComparedFamily, ...]  # of a prediction beside a measurement, what is off most first
    notes: tuple[str, ...]


class CompareData(msgspec.Struct, frozen=True):
    """Two or more Runs; the first is the base."""

    schema: Literal["opscope.compare-page/1"]
    producer: Producer
    runs: tuple[ComparedRun, ...]
    compared: Compared | None


class StoreAxis(msgspec.Struct, frozen=True):
    """Something that cells differ in; column `a<n>` of the block `cells` has places among its words, -1: not known."""

    name: str
    sql: str
    words: tuple[str, ...]  # in the order to show them in
    number: bool


class StoreMetric(msgspec.Struct, frozen=True):
    """A figure of cells; column `m<n>` of the block `cells`, and `l<n>` to `h<n>` its range."""

    name: str
    unit: str
    better: str  # "less", "more"; empty: neither
    sql: str  # empty: it is not in the store but was given beside it
    ranged: bool


class MovedOp(msgspec.Struct, frozen=True):
    name: str
    ns: float


class StoreChange(msgspec.Struct, frozen=True):
    """A change point of one metric of one series, from the cell in row `row` on."""

    metric: int
    row: int
    before: float
    after: float
    low: float | None  # of the interval of the ratio, less one; None: exact
    high: float | None
    note: str
    cause: MovedOp | None
    ops: tuple[MovedOp, ...]


class StoreData(msgspec.Struct, frozen=True):
    """Cells of a store. Their columns are in the block `cells`: axes, metrics, and what tells of each cell."""

    schema: Literal["opscope.store-page/1"]
    producer: Producer
    store: str
    where: str  # condition that all of the page is under
    served: bool
    cells: int  # in the store
    rows: int  # in the page
    axes: tuple[StoreAxis, ...]
    metrics: tuple[StoreMetric, ...]
    reasons: tuple[str, ...]  # why cells have no figures, or no totals; by number
    runs: tuple[str, ...]  # addresses of pages of runs, by number
    changes: tuple[StoreChange, ...]  # largest first
    notes: tuple[str, ...]


class BakeoffKind(msgspec.Struct, frozen=True):
    """A kind of number: rows of two kinds are never held against each other."""

    name: str
    why: str


class BakeoffPageRow(msgspec.Struct, frozen=True):
    """A chip as one source tells it; texts are as the other views have them."""

    target: str
    title: str
    group: str
    backend: str
    precision: str
    kind: str  # empty: there is no latency
    why: str  # there is none, or it is withheld
    latency_ns: float | None
    low_ns: float | None
    high_ns: float | None
    peak_bytes: float | None
    fits: bool | None
    fits_text: str
    energy_j: float | None
    energy_text: str
    energy_whole: bool  # nothing is left out of it
    time_share: float | None
    op_share: float | None
    cpu_ops: str
    compile_s: float | None
    sqnr_db: float | None
    error_text: str
    is_on_front: bool


class BakeoffData(msgspec.Struct, frozen=True):
    """One model on many chips."""

    schema: Literal["opscope.bakeoff-page/1"]
    producer: Producer
    model: str
    head: str
    kinds: tuple[BakeoffKind, ...]
    rows: tuple[BakeoffPageRow, ...]
    notes: tuple[str, ...]


class CalibrationRow(msgspec.Struct, frozen=True):
    """A measurement beside what was predicted without its network."""

    network: str
    chip: str
    precision: str
    ruled_by: str  # the figure that most of the time depends on
    measured_ns: float
    predicted_ns: float
    low_ns: float
    high_ns: float
    inside: bool


class CalibrationGroup(msgspec.Struct, frozen=True):
    """Errors of rows that have something in common."""

    name: str
    rows: int
    median_error: float
    p90_error: float
    bias: float
    coverage: float | None
    width: float  # high ÷ low


class CalibrationGroups(msgspec.Struct, frozen=True):
    by: str
    groups: tuple[CalibrationGroup, ...]


class CalibrationFigure(msgspec.Struct, frozen=True):
    key: str
    data_sheet: float
    value: float
    low: float
    high: float
    most: float  # of the time of any row


class CalibrationData(msgspec.Struct, frozen=True):
    """A fit: what it predicts against what was measured, and what it found."""

    schema: Literal["opscope.calibration-page/1"]
    producer: Producer
    target: str
    head: str
    rows: tuple[CalibrationRow, ...]
    groups: tuple[CalibrationGroups, ...]
    figures: tuple[CalibrationFigure, ...]  # farthest moved first
    unexplained: tuple[str, ...]
    next: str  # what to measure; empty: nothing stands out
    skipped: tuple[str, ...]


class Contract(msgspec.Struct, frozen=True):
    """Every kind of page, for one schema."""

    page: PageData
    compare: CompareData
    store: StoreData
    bakeoff: BakeoffData
    calibration: CalibrationData


def json_schema() -> dict[str, object]:
    """The contract as JSON Schema. Whatever has a default is written all the same: every field is required."""
    schema = msgspec.json.schema(Contract)
    words = [name for name, found in schema["$defs"].items() if "enum" in found]
    text = json.dumps(schema)
    for name in words:  # the page shows a word that it does not know as it is
        text = text.replace(f'"$ref": "#/$defs/{name}"', '"type": "string"')  # with a default or without
    schema = json.loads(text)
    for name in words:
        del schema["$defs"][name]
    for definition in schema["$defs"].values():
        definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = False
    return dict(schema)
