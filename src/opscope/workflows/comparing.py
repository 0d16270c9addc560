"""`opscope compare` and `baseline` behind the api: wires the reader of runs, the names of layers and the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ..analysis.run_totals import with_known_breakdown
from ..analysis.structure import Structure, structure_of
from ..core.errors import UsageError, printable
from ..core.files import read_whole, write_bytes
from ..core.meaning import ALLOWABLE, COMPARED_BY
from ..gate.baseline import LARGEST_BYTES, decode_baseline, encode_baseline
from ..gate.compare import compare as compare_figures
from ..gate.comparison import Comparison, SideBySide
from ..gate.figures import Figures, Labels, Row, known_labels
from ..gate.limits import parse_limit
from ..gate.run_figures import figures_of_parts, of_run
from ..gate.side_by_side import side_by_side as put_side_by_side
from ..recording.folder_reader import read_columns, read_op_cycles, read_run
from ..recording.run import Run

Source = str | Path | Run | Figures  # folder of a run, profile or baseline file, or what either holds


def _structure(run: Figures) -> Structure:
    """Layer and block of every row; a row that is no op of the model is under its own name."""
    places = [place for place, op in enumerate(run.ops) if op.row is Row.OP]
    found = structure_of([run.ops[place] for place in places])
    layers, blocks = [op.name for op in run.ops], [op.name for op in run.ops]
    for place, layer, block in zip(places, found.layers, found.blocks, strict=True):
        layers[place], blocks[place] = layer, block
    return Structure(tuple(layers), tuple(blocks))


LABELS: dict[str, Labels] = {
    "type": lambda run: [op.type or op.name for op in run.ops],
    "module": lambda run: [op.module or op.name for op in run.ops],
    "layer": lambda run: _structure(run).layers,
    "block": lambda run: _structure(run).blocks,
    "engine": lambda run: [op.engine or "(unknown)" for op in run.ops],
}


def figures_of(source: Source, *, label: str | None = None) -> Figures:
    """What a comparison needs of a run, a profile file of another tool, or a baseline file."""
    return with_kinds(_figures_of(source, label))


def with_kinds(figures: Figures) -> Figures:
    """Types in the vocabulary of a Graph, so that a network in two formats has ops of the same kinds."""
    if all(op.kind or not op.type for op in figures.ops):
        return figures
    kinds = _kinds_of_types()
    ops = (op if op.kind else replace(op, kind=kinds.get(op.type, "")) for op in figures.ops)
    return replace(figures, ops=tuple(ops))


@cache
def _kinds_of_types() -> Mapping[str, str]:
    """Type as a model file spells it → kind."""
    from ..readers.onnx.ops import DOMAINS
    from ..readers.tflite.schema import BUILTINS

    onnx = {name: rule.kind for rules in DOMAINS.values() for name, rule in rules.items()}
    return onnx | {builtin.name: builtin.kind for builtin in BUILTINS}


def _figures_of(source: Source, label: str | None) -> Figures:
    if isinstance(source, Figures):
        return source if label is None else replace(source, label=label)
    if isinstance(source, Run):
        return of_run(with_known_breakdown(source).run, label=label or source.info.network)
    path = Path(source)
    name = label or path.name or str(path.resolve().name)
    if path.is_dir():
        return _figures_of_run(path, name)
    return _figures_of_profile(path, name) or decode_baseline(_read(path), source=str(path), label=name)


def _figures_of_profile(path: Path, label: str) -> Figures | None:
    """Figures of a profile file of another tool; None: the file is not one."""
    from ..importers.formats import is_profile  # all formats: a tenth of a second
    from .importing import analysis_of_file

    if not path.is_file() or not is_profile(path):
        return None
    return of_run(analysis_of_file(path, created="")[0].run, label=label)


def _figures_of_run(path: Path, label: str) -> Figures:
    info, ops, summary, spans = read_columns(path)
    if not summary.breakdown:  # an earlier version wrote it, or it tells no times
        summary = with_known_breakdown(read_run(path)).run.summary
    try:
        cycles = read_op_cycles(path, len(ops))
        return figures_of_parts(info, ops, summary, spans, label=label, op_cycles=cycles)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{path}: {printable(str(error))}; expected the folder of a run") from error


def _read(path: Path) -> bytes:
    expected = "a run, a profile file or a baseline file"
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is no regular file; expected {expected}")
    return read_whole(path, expected, most_bytes=LARGEST_BYTES)


def compare(
    base: Source, new: Source, *, fail_on: Sequence[str] = (), allow: Collection[str] = (), seed: int = 0
) -> Comparison:
    """Every difference of two runs, and the verdict of the limits."""
    limits = [parse_limit(text) for text in fail_on]
    unknown = set(allow) - set(ALLOWABLE)
    if unknown:
        raise UsageError(f"--allow {min(unknown)}: not known; expected of {', '.join(ALLOWABLE)}")
    one, other = _read_all([base, new])
    return compare_figures(one, other, limits=limits, allow=allow, labels=LABELS, seed=seed)


def side_by_side(sources: Sequence[Source], *, by: str = "op") -> SideBySide:
    """One column per run."""
    if by not in COMPARED_BY:
        raise UsageError(f"--by {by}: not known; expected one of {', '.join(COMPARED_BY)}")
    if len(sources) < 2:
        raise UsageError("compare: nothing to compare with; expected at least two runs")
    runs = _read_all(sources)
    if by != "op" and by not in known_labels(LABELS, *runs):
        raise UsageError(f"--by {by}: these runs do not tell it; expected runs of a model that PyTorch exported")
    return put_side_by_side(runs, by=by, label=LABELS.get(by))


def _read_all(sources: Sequence[Source]) -> list[Figures]:
    """Each under its own name; where two would have the same, under the path that was given."""
    ready = [
        source if isinstance(source, str | Path) and Path(source).is_dir() else figures_of(source) for source in sources
    ]
    with ThreadPoolExecutor(2) as readers:  # most of the work is sorting and decompressing, outside the interpreter
        found = list(readers.map(figures_of, ready))
    times = Counter(figures.label for figures in found)
    return [
        replace(figures, label=str(source)) if times[figures.label] > 1 and isinstance(source, str | Path) else figures
        for figures, source in zip(found, sources, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Updated:
    """A baseline that was written again."""

    comparison: Comparison | None  # with what was there; None: it was of something else
    note: str = ""
    changed: bool = True  # the file has other bytes than before


def save_baseline(run: Source, file: Path) -> Figures:
    """Write a baseline; one that is there already is not replaced."""
    if file.exists():
        raise UsageError(f"{file}: exists; expected a new file, or `opscope baseline update RUN {file}`")
    figures = figures_of(run)
    write_bytes(file, encode_baseline(figures, labels=LABELS))
    return figures


def update_baseline(run: Source, file: Path) -> Updated:
    """Replace a baseline, and say what that changes."""
    before = figures_of(file)
    after = figures_of(run)
    data, old = encode_baseline(after, labels=LABELS), _read(file)
    try:
        found = compare_figures(before, after, labels=LABELS)
        result = Updated(found, changed=data != old)
    except UsageError as error:  # of another target, say: replaced all the same, because that is what was asked
        result = Updated(None, str(error), changed=data != old)
    write_bytes(file, data)
    return result
