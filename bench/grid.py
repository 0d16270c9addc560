"""Laws over a grid: networks × batches × cores of a card, then × devices; exit code 1 where one is broken.

Each point is compiled and simulated in this program, without files of a run. `--docs` writes docs/grid.md from what
came out. What is judged, and how, is in tests/support/device/law_grid.py, which tests share.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from measure import ROOT, progress

sys.path.insert(0, str(ROOT / "tests"))
from opscope.core.units import format_seconds
from opscope.zoo import names
from support.device.law_grid import (
    MOST_BATCH,
    NETWORKS,
    PRECISIONS,
    Case,
    Machine,
    Point,
    Violation,
    points_of,
    violations,
)

CARD, ULTRA, ULTRA_CORES = "aic100-std", "aic100-ultra", 16
BATCHES = (1, 2, 8, 14, 16, 32, 64)
CORES = (1, 2, 4, 7, 8, 12, 14)
DEVICES = (1, 2, 4)
SMALL = ("bert-2-layers", "vit-2-layers")  # parts of networks that are in the grid whole
QUICK = {
    "networks": ("resnet50", "fc", *SMALL),
    "batches": (1, 8, 16),
    "cores": (1, 4, 14),
    "devices": (),
}
PAGE = ROOT / "docs" / "grid.md"
START, END = "<!-- tables: python bench/grid.py --docs -->", "<!-- end of tables -->"


def options() -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    known = ", ".join(NETWORKS)
    parser.add_argument(
        "--networks", type=_words, help=f"of {known} (default: all but {', '.join(SMALL)}), or any of the zoo"
    )
    parser.add_argument("--precisions", type=_words, default=tuple(PRECISIONS), help="of f16, i8 (default: both)")
    parser.add_argument("--batches", type=_numbers, help=f"default {_list(BATCHES)}")
    parser.add_argument("--cores", type=_numbers, help=f"of {CARD}; default {_list(CORES)}")
    parser.add_argument(
        "--devices", type=_numbers, help=f"of {ULTRA}, {ULTRA_CORES} cores each; default 1,2,4; 0: none"
    )
    parser.add_argument("--quick", action="store_true", help="a few networks, batches and numbers of cores: a minute")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write points and violations here")
    parser.add_argument(
        "--points", type=Path, nargs="+", metavar="FILE", help="of earlier runs (--json): simulate none"
    )
    parser.add_argument("--docs", action="store_true", help=f"also write the tables of {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    if any(name not in {*NETWORKS, *(entry.name for entry in names())} for name in chosen.networks or ()):
        parser.error(f"--networks {_list(chosen.networks)}: expected some of {known}, or of the zoo")
    return chosen


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(number for word in text.split(",") if (number := int(word)))


def _list(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def cases(chosen: Namespace) -> Iterator[Case]:
    """Large batches first: what takes longest should not be what is left at the end."""
    usual = (
        QUICK
        if chosen.quick
        else {
            "networks": tuple(name for name in NETWORKS if name not in SMALL),
            "batches": BATCHES,
            "cores": CORES,
            "devices": DEVICES,
        }
    )
    networks, batches, cores, devices = (
        usual[key] if getattr(chosen, key) is None else getattr(chosen, key) for key in usual
    )
    card = tuple(Machine(CARD, count) for count in cores)
    several = tuple(Machine(ULTRA, ULTRA_CORES, count) for count in devices)
    for batch in sorted(batches, reverse=True):
        for network in networks:
            for precision in chosen.precisions if batch <= MOST_BATCH.get(network, batch) else ():
                yield Case(network, precision, batch, (*card, *several))


def measured(work: Sequence[Case], jobs: int) -> list[Point]:
    """Every point of every case, in the order of the cases."""
    begin, found = perf_counter(), dict[int, list[Point]]()
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {pool.submit(points_of, case): number for number, case in enumerate(work)}
        for done in as_completed(waiting):
            case = work[waiting[done]]
            found[waiting[done]] = done.result()
            spent = perf_counter() - begin
            progress(f"{len(found)} of {len(work)}: {case.network} {case.precision} batch {case.batch}, {spent:.0f} s")
    return [point for number in sorted(found) for point in found[number]]


def kept(files: Sequence[Path]) -> list[Point]:
    """Points that earlier runs wrote; of one that is in several files, the last."""
    found = {}
    for file in files:
        for row in json.loads(file.read_text())["points"]:
            point = Point(**{**row, "machine": Machine(**row["machine"]), "broken": tuple(row["broken"])})
            found[point.network, point.precision, point.batch, point.machine] = point
    return list(found.values())


# ---- tables ------------------------------------------------------------------------------------------------------


def tables(points: Sequence[Point]) -> Iterator[tuple[str, list[list[str]]]]:
    """Per network and type: a row per batch, a column per machine, times and how near they are to the bound."""
    for name in dict.fromkeys((point.network, point.precision) for point in points):
        own = [point for point in points if (point.network, point.precision) == name]
        machines = list(dict.fromkeys(point.machine for point in sorted(own, key=_order)))
        rows = [["batch", *(_column(machine) for machine in machines)]]
        for batch in sorted({point.batch for point in own}):
            at = {point.machine: point for point in own if point.batch == batch}
            rows.append([str(batch), *(_cell(at.get(machine)) for machine in machines)])
        yield " ".join(name), rows


def _order(point: Point) -> tuple[bool, int, int]:
    machine = point.machine
    return machine.target != CARD, machine.devices, machine.cores


def _column(machine: Machine) -> str:
    if machine.target == CARD:
        return f"{machine.cores} core{'s' * (machine.cores > 1)}"
    return f"{machine.devices} × {machine.cores}"


def _cell(point: Point | None) -> str:
    return "—" if point is None else f"{format_seconds(point.seconds)} {point.efficiency:.0%}"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    lines = [head, ["---:"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_page(points: Sequence[Point], found: Sequence[Violation]) -> None:
    """The part of the page between its marks."""
    parts = [f"## {title}\n\n{markdown_table(rows)}" for title, rows in tables(points)]
    parts.append(f"## Laws\n\n{summary(points, found)}")
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    after = rest.split(END)[1]
    text = f"{before}{START}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}"
    PAGE.write_text(text, encoding="utf-8", newline="\n")


def summary(points: Sequence[Point], found: Sequence[Violation]) -> str:
    if not found:
        return f"All laws hold at all {len(points):,} points."
    counts = Counter(violation.law for violation in found)
    lines = [f"| {law} | {count:,} |" for law, count in counts.most_common()]
    return "\n".join([f"Of {len(points):,} points:\n", "| law | broken |", "| --- | ---: |", *lines])


def main() -> None:
    chosen = options()
    points = kept(chosen.points) if chosen.points else measured(list(cases(chosen)), chosen.jobs)
    found = violations(points)
    for title, rows in tables(points):
        print(f"\n{title}: time and share of the bound\n{text_table(rows)}")
    print()
    for violation in found:
        print(violation)
    print(f"\n{summary(points, found)}")
    if chosen.json:
        document = {"points": [asdict(point) for point in points], "violations": [asdict(each) for each in found]}
        chosen.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if chosen.docs:
        write_page(points, found)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
