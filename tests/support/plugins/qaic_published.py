"""The published run of BERT-base on a Cloud AI 100 (`tests/published`), written in the layouts of the vendor's tools.

Shares, rates and the totals of cores are computed here from the figures that they follow from, so that a reader and
a writer of the product are held against an independent one.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict, cast

PUBLISHED = Path(__file__).parents[2] / "published"
SUMMARY = "aic-profiling-program-0-activation-0-inf-100.txt"
STDOUT = "runner_stdout.txt"
PERCENTILES = "latency_percentiles.txt"
METRICS = "compile_metrics.txt"
UNKNOWN = "N/A"
Record = dict[str, str]


class Inference(TypedDict):
    network: str
    batch: int
    timer_hz: int
    pcycles: list[int]


class RunFigures(TypedDict):
    inferences: int
    duration_us: int
    batch: int
    per_second: float
    metrics: dict[str, list[float]]


class CompilerFigures(TypedDict):
    model: str
    mac_estimate: str
    histogram: dict[str, tuple[int, int]]
    bytes: dict[str, int]
    counts: dict[str, int]


class Figures(TypedDict):
    inference: Inference
    runs: dict[str, RunFigures]
    compiler: CompilerFigures


def figures() -> Figures:
    return cast("Figures", tomllib.loads((PUBLISHED / "cloud_ai_bert.toml").read_text(encoding="utf-8")))


def rows(table: str) -> list[Record]:
    with (PUBLISHED / f"cloud_ai_bert_{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def written(folder: Path, name: str) -> Path:
    """One of the four files, in `folder`."""
    texts = {SUMMARY: summary_text, STDOUT: stdout_text, PERCENTILES: percentiles_text, METRICS: metrics_text}
    path = folder / name
    path.write_text(texts[name](), encoding="utf-8", newline="\n")
    return path


def summary_text() -> str:
    """One inference: op kinds, threads, ports and totals."""
    one, kinds, threads = figures()["inference"], rows("kinds"), rows("threads")
    lines: list[str] = []
    for core, pcycles in enumerate(one["pcycles"]):
        own = [row for row in threads if row["core"] == str(core)]
        lines += _core_lines(core, [row for row in kinds if row["core"] == str(core)], own)
        lines += _counter_lines(core, own, pcycles, one["timer_hz"])
    lines += _total_lines(threads, one)
    return "\n".join(lines) + "\n"


def _core_lines(core: int, kinds: Sequence[Record], threads: Sequence[Record]) -> Iterator[str]:
    ucycles, pcycles = max(map(_ucycles, threads)), max(int(row["pcycles"]) for row in threads)
    yield ""
    yield (
        "core  ucycles  ucycles(%)     pcycles  pcycles(%)  count      out KB  ucycles/KB  pcycles/KB  stddev(pc/KB)"
        "  opdetails"
    )
    for row in kinds:
        yield _kind_line(row, ucycles, pcycles)
    yield ""
    yield f"c{core} total:          {ucycles} ucycles        {pcycles} pcycles (thread max)"
    for row in threads:
        yield (
            f"c{core}    t{row['thread']} {row['engine']:<8}{_ucycles(row):16d} ucycles [{row['start']}, {row['end']}]"
            f"{int(row['pcycles']):16d} pcycles{float(row['utilization']):7.2f}% utilization"
        )


def _kind_line(row: Record, ucycles: int, pcycles: int) -> str:
    known = bool(row["pcycles"])
    size = float(row["out_kb"] or 0)
    types = f"({row['types']})" if row["types"] else ""
    wait = row["kind"] in ("sync", "barrier")
    details = f"{row['kind']} {row['engine']}" if wait else f"{row['kind']} {row['engine']} {row['memory']} {types}"
    cells = (
        f"{int(row['ucycles']):8d}",
        f"{100 * int(row['ucycles']) / ucycles:11.2f}%",
        f"{row['pcycles'] if known else UNKNOWN:>12}",
        f"{100 * int(row['pcycles']) / pcycles:11.2f}%" if known else f"{UNKNOWN:>12}",
        f"{row['count']:>7}",
        *(
            f"{value:{width}.2f}" if known else f"{UNKNOWN:>{width}}"
            for value, width in (
                (size, 12),
                (int(row["ucycles"]) / (size or 1), 12),
                (int(row["pcycles"] or 0) / (size or 1), 12),
                (float(row["deviation"] or 0), 15),
            )
        ),
    )
    return f"c{row['core']}   {''.join(cells)}  {details}"


def _counter_lines(core: int, threads: Sequence[Record], inference_pcycles: int, timer_hz: int) -> Iterator[str]:
    ucycles, pcycles = max(map(_ucycles, threads)), max(int(row["pcycles"]) for row in threads)
    yield ""
    yield ""
    for row in threads:
        yield (
            f"c0{core}t{row['thread']} batch ucycles:{_ucycles(row):17d} [{row['start']},{row['end']}]"
            f"    pcycles:{int(row['pcycles']):16d} "
        )
    yield f"c{core}: Total inference pcycle is {inference_pcycles}"
    yield f"c{core}: Effective frequency is {pcycles / ucycles * timer_hz / 1e6:.2f}MHz"
    for port, column in ((100, "input_wait"), (101, "output_wait")):
        for row in threads:
            yield f"c0{core}t{row['thread']}p{port} Host_IO_Port ucycles:{int(row[column]):17d}"
    for row in threads:
        yield f"c0{core}t{row['thread']} activate ucycles:{int(row['activate']):18d}"


def _total_lines(threads: Sequence[Record], one: Inference) -> Iterator[str]:
    start, end = min(int(row["start"]) for row in threads), max(int(row["end"]) for row in threads)
    seconds = (end - start) / one["timer_hz"]
    yield f"total batch ucycles:{end - start:17d} [{start}, {end}]"
    for word, count in (("batch", 1), ("inf", one["batch"])):
        yield f"[{one['network']}] Device instance {word}/s: ({count}/{seconds:.6g}): {count / seconds:.6g}"
    yield f"max input wait ucycles:{max(int(row['input_wait']) for row in threads):18d}"
    yield f"max output wait ucycles:{max(int(row['output_wait']) for row in threads):17d}"


def _ucycles(thread: Record) -> int:
    return int(thread["end"]) - int(thread["start"])


def stdout_text(run: str = "profiled") -> str:
    """What the runner prints at its end, after the names of files that it wrote."""
    found = figures()["runs"][run]
    lines = [
        "Writing file:./stats/aic-profiling-program-0-latency.txt",
        " ---- Stats ----",
        f"InferenceCnt {found['inferences']} TotalDuration {found['duration_us']}us BatchSize {found['batch']}"
        f" Inf/Sec {found['per_second']:.3f}",
        "Device Performance: ",
        "Metric,          Avg,           Min,           Max,           Std            ",
    ]
    for name, values in found["metrics"].items():
        *others, last = (f"{value:.3f}" for value in values)
        lines.append(f"{name + ',':<17}" + "".join(f"{cell + ',':<15}" for cell in others) + f"{last:<15}")
    return "\n".join(lines) + "\n\n"


def percentiles_text() -> str:
    """Latencies in ms over all activations, as the tutorial's script prints them."""
    table = rows("latency")
    head, *columns = table[0]
    lines = ["All activations combined:", " " * 18 + "".join(f"{column:>12}" for column in columns)]
    lines += [f"{row[head]:<18}" + "".join(f"{row[column]:>12}" for column in columns) for row in table]
    mean = float(table[-1]["mean"])
    return "\n".join([*lines, f"{table[-1][head]}: percentile(mean) = {mean:.3f} ms"]) + "\n"


def metrics_text() -> str:
    """Sizes, counts and traffic that the compiler prints."""
    found = figures()["compiler"]
    lines = [f"Reading ONNX Model from {found['model']}", f"Original MAC estimate: {found['mac_estimate']}"]
    lines += ["Original Graph operation size histogram:", "output elts    op count (cumulative)"]
    lines += [f"{int(size):11d}{ops:20d}{share:4d}%" for size, (ops, share) in found["histogram"].items()]
    lines += [f"{name}: {size} B" for name, size in found["bytes"].items()]
    lines += ["Compiler estimated memory traffic:"]
    for row in rows("traffic"):
        lines += _traffic_lines(row)
    lines += [f"{name}: {count}" for name, count in found["counts"].items()]
    return "\n".join(lines) + "\n"


def _traffic_lines(row: Record) -> Iterator[str]:
    first, first_constant = (
        f" (first-inf {int(row[column]):10d} KB)" if row[column] else "" for column in ("first_kb", "constant_first_kb")
    )
    yield f"{row['who']:>7}: {row['traffic']:<3} traffic {row['direction']:>5}: {int(row['kb']):10d} KB{first}"
    if row["constant_kb"]:
        who = " " * 9 if first else f"{row['who']:>7}: "
        yield f"{who}    constant only: {int(row['constant_kb']):10d} KB{first_constant}"
