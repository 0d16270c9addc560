"""The table of layers that Rockchip's toolkit and runtime print, row by row.

Columns differ between releases and are read from the heading. Cells may be blank (`MacUsage(%)`, `FullName`), and one
that is longer than its column pushes the others to the right: cells are told apart by what may stand in them, not by
where they stand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...importers.reading import number_in, whole_in

Shape = tuple[int, ...]

LONGEST_LINE = 20_000
READS, BOTH = "reads", "both"
_NEAR, _MOST = 0.05, 0.6  # how far a figure may be off what shapes say, for padding; how many rows must agree
_MOST_COUNT = 1 << 50  # beyond which no count, size or number of elements is believed
_COUNT, _NUMBER = r"\d+", r"\d+(?:\.\d+)?"
_SHAPES = r"\\+|\([^()\s]*\)(?:,\([^()\s]*\))*(?:,?\.{3})?"
_CELLS = {
    "id": _COUNT,
    "optype": r"\S+",
    "datatype": r"\S+",
    "target": r"[A-Z]+",
    "inputshape": _SHAPES,
    "outputshape": _SHAPES,
    "ddrcycles": _COUNT,
    "npucycles": _COUNT,
    "totalcycles": _COUNT,
    "cycles": rf"{_COUNT}/{_COUNT}/{_COUNT}",
    "time": _NUMBER,
    "macusage": rf"\\+|{_NUMBER}(?:/{_NUMBER})*",
    "workload": rf"{_NUMBER}%(?:/{_NUMBER}%)*(?:\s*-\s*Up:{_NUMBER}%)?",
    "tasknumber": _COUNT,
    "lutnumber": _COUNT,
    "tasksize": _COUNT,
    "regcmdsize": _COUNT,
    "counts": rf"{_COUNT}(?:\s+{_COUNT})*",
    "rw": _NUMBER,
    "fullname": r"\S.*?",
}
_MAY_BE_BLANK = ("macusage", "counts", "fullname")
_COUNTS = ("tasknumber", "lutnumber", "tasksize", "regcmdsize")
_ALIASES = {"maxcycles": "totalcycles"}
_HEADING = re.compile(r"\bID\s+OpType\s+DataType\s+Target\b.*")
_TITLE = re.compile(r"(?:DDR|NPU|Total|Max)\s?Cycles|(?:Task|Lut)\s?Number|(?:Task|Regcmd)\s?Size|\S+")
_ROW = re.compile(r"(?<![\w.:,(/-])\d+\s+[A-Za-z_]\S*\s+[A-Z][A-Z0-9]*\s+[A-Z]{3}(?=\s)")
_SHAPE = re.compile(r"\(([\d,\s-]*)\)")
_CORES = re.compile(r"WorkLoad\(([\d/]+)\)(?!-)")  # up to 1.5, with more behind it, three are named for every part
_OLD_HEADING = re.compile(r"\bLayer ID\s+Name\s+(?:(Operator)\s+Uid\s+)?Time\(us\)")
_WIDTHS = {"4": 0.5, "8": 1, "16": 2, "32": 4, "64": 8}  # bytes, by the digits at the end of a type's name
CSV_COLUMNS = (  # of a file without a heading, which is the text split at blanks
    "ID OpType DataType Target InputShape OutputShape DDRCycles NPUCycles TotalCycles Time(us) MacUsage(%) "
    "WorkLoad Counts RW(KB) FullName"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """One row. None: the table does not tell, or says that it does not know."""

    number: int
    type: str
    name: str
    dtype: str = ""
    engine: str = ""
    inputs: tuple[Shape, ...] | None = None  # None: none, or more than the table shows
    outputs: tuple[Shape, ...] | None = None
    shapes: str = ""
    ddr_cycles: int | None = None
    npu_cycles: int | None = None
    total_cycles: int | None = None
    time_us: float | None = None
    mac_usage_percent: tuple[float, ...] = ()
    load_percent: tuple[float, ...] = ()  # by core
    rw_bytes: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def macs(self) -> int | None:
        """Of a convolution, by its shapes; depthwise weights are written 1 × channels × kernel."""
        if not self.type.startswith("Conv") or self.type.startswith("ConvTranspose"):
            return None
        if self.inputs is None or len(self.inputs) < 2 or self.outputs is None or len(self.outputs) != 1:
            return None
        weights, (output,) = self.inputs[1], self.outputs
        if len(weights) != 4 or len(output) != 4:
            return None
        if weights[0] == output[1]:
            return math.prod(output) * math.prod(weights[1:])
        is_depthwise = weights[0] == 1 and weights[1] == output[1]
        return math.prod(output) * math.prod(weights[2:]) if is_depthwise else None

    def bytes_of(self, shapes: tuple[Shape, ...] | None) -> float | None:
        """Of tensors of the row's type; None: not all of them are told."""
        digits = re.search(r"\d+$", self.dtype)
        width = _WIDTHS.get(digits[0]) if digits else None
        return None if width is None or not shapes else width * sum(map(math.prod, shapes))


class Heading:
    """The columns of one table, and how to read its rows."""

    def __init__(self, text: str) -> None:
        titles = [title for title in _TITLE.findall(text) if set(title) != {"."}]
        self.keys = [_key(title) for title in titles]
        cores = _CORES.search(text)
        self.cores = len(cores[1].split("/")) if cores is not None else None
        self._row = re.compile("".join(_cell(n, key) for n, key in enumerate(self.keys)) + r"\s*$")

    def layer(self, text: str) -> Layer | None:
        """A row; None: it is none, or not a whole one."""
        found = self._row.match(text)
        if found is None:
            return None
        cells: dict[str, str] = {}
        for number, key in enumerate(self.keys):
            cells.setdefault(key, (found[f"c{number}"] or "").strip())
        return _layer(cells)


def heading_in(text: str) -> Heading | None:
    """Of a line that has one, whatever stands before it."""
    found = _HEADING.search(text)
    return None if found is None else Heading(found[0])


def row_in(text: str) -> str | None:
    """The part of a line from where a row begins; None: no row begins there."""
    found = _ROW.search(text)
    return None if found is None else text[found.start() :]


def _key(title: str) -> str:
    word = re.sub(r"\s", "", title).lower()
    word = re.split(r"[(-]", word, maxsplit=1)[0]
    return _ALIASES.get(word, word)


def _cell(number: int, key: str) -> str:
    inside = _CELLS.get(key, r"\S+")
    pattern = rf"(?:(?P<c{number}>{inside})(?:\s+|$))"
    return pattern + "?" if key in _MAY_BE_BLANK else pattern


def _layer(cells: Mapping[str, str]) -> Layer | None:
    number = whole_in(cells.get("id", ""))
    if number is None:
        return None
    ddr, npu, total = cells["cycles"].split("/") if "cycles" in cells else map(cells.get, _THREE)
    whole = _count(total or "") or None  # 0/0/0 is of layers that the vendor's model leaves out
    inputs, outputs = (cells.get(key, "") for key in ("inputshape", "outputshape"))
    kib = number_in(cells.get("rw", ""))
    return Layer(
        number,
        cells["optype"],
        _name(cells.get("fullname", ""), cells["optype"], number),
        cells.get("datatype", ""),
        cells.get("target", ""),
        _shapes(inputs),
        _shapes(outputs),
        " → ".join(text for text in (inputs, outputs) if text.strip("\\")),
        None if whole is None else _count(ddr or ""),
        None if whole is None else _count(npu or ""),
        whole,
        number_in(cells.get("time", "")),
        _numbers(cells.get("macusage", "")),
        _numbers(cells.get("workload", "").partition("-")[0]),
        round(kib * 1024) if kib is not None and kib < _MOST_COUNT / 1024 else None,  # 3 × 224 × 224 bytes: 147.00 KB
        {key: count for key in _COUNTS if (count := _count(cells.get(key, ""))) is not None},
    )


def _count(text: str) -> int | None:
    value = whole_in(text)
    return value if value is not None and value < _MOST_COUNT else None


_THREE = ("ddrcycles", "npucycles", "totalcycles")


def _name(full: str, type_: str, number: int) -> str:
    """Name of the node in the model. `Conv:/stem/Conv` has its op type before it; what the runtime put in keeps it."""
    if not full:
        return f"{type_} #{number}"
    before, colon, name = full.partition(":")
    return name if colon and name and before.isidentifier() and not before.endswith("Operator") else full


def _shapes(text: str) -> tuple[Shape, ...] | None:
    if not text or "..." in text:
        return None
    found = []
    for inside in _SHAPE.findall(text):
        sizes = [whole_in(size) for size in inside.split(",") if size.strip()]
        shape = tuple(size for size in sizes if size is not None and size >= 0)
        if len(shape) != len(sizes) or math.prod(shape) >= _MOST_COUNT:
            return None
        found.append(shape)
    return tuple(found) or None


def _numbers(text: str) -> tuple[float, ...]:
    found = [number_in(part.strip(" %")) for part in text.split("/")]
    return tuple(value for value in found if value is not None)


class OldHeading:
    """Of the first toolkit (RK1808, RV1126): names are broken into lines of forty characters."""

    def __init__(self, found: re.Match[str]) -> None:
        kind = r"(?P<type>\S+)\s+\d+\s+" if found[1] else ""
        self._row = re.compile(rf"(?P<id>\d+)\s+(?P<name>\S.*?)\s+{kind}(?P<time>{_NUMBER})\s*$")
        self.cores = None

    def layer(self, text: str) -> Layer | None:
        found = self._row.match(text.strip())
        if found is None:
            return None
        type_ = found.groupdict().get("type") or ""
        return Layer(whole_in(found["id"]) or 0, type_, found["name"], time_us=number_in(found["time"]))


def old_heading_in(text: str) -> OldHeading | None:
    found = _OLD_HEADING.search(text)
    return None if found is None else OldHeading(found)


def traffic_is(layers: Sequence[Layer]) -> str:
    """What RW(KB) counts here: `reads`, `both`, or neither for most rows, which is empty.

    Public tables differ: in older ones a row has inputs, weights and outputs, in newer ones inputs and weights alone,
    and one has the figure of the row below. The shapes decide.
    """
    votes: list[str] = []
    for layer in layers:
        given, made = layer.bytes_of(layer.inputs), layer.bytes_of(layer.outputs)
        if layer.engine == "NPU" and layer.rw_bytes and given and made:
            ways = {READS: given, BOTH: given + made}
            off = {name: abs(layer.rw_bytes - wanted) / (wanted + 1024) for name, wanted in ways.items()}
            name = min(off, key=lambda way: off[way])
            votes.append(name if off[name] <= _NEAR else "")
    return next((name for name in (READS, BOTH) if votes.count(name) >= max(2, _MOST * len(votes))), "")
