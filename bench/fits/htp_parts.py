"""How far off are times of a part that are replayed from the nearest other?

Every part that the vendor's performance model knows is held out in turn: its time by the model itself ÷ the time
replayed from the nearest other part. `docs/trust.md` shows the table, and the spread is `[scaling]` of hexagon.toml.

    bench/fits/htp_parts.py [FOLDER]     networks of the zoo, and every ONNX model of a folder
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from opscope.core.errors import ProfilerError
from opscope.plugins.qnn.compilation import Compilation, compile_model
from opscope.plugins.qnn.hexagon import hexagon_of
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.parts.neighbour import macs_of, nearest
from opscope.plugins.qnn.parts.scaling import Rates, scaled
from opscope.plugins.qnn.socs import SOCS, Soc
from opscope.zoo import Recipe, make

ZOO = (
    ("mobilenetv2", "int8", {}),
    ("mobilenetv2", "f32", {}),
    ("resnet50", "int8", {}),
    ("resnet50", "f32", {}),
    ("kws-cnn", "int8", {}),
    ("cifar-resnet", "int8", {}),
    ("cifar-resnet", "f32", {}),
    ("vit-b16", "int8", {"layers": 2}),
    ("vit-b16", "f32", {"layers": 2}),
    ("llm-decoder", "f32", {"layers": 1, "hidden": 1024, "heads": 8, "intermediate": 2816, "vocabulary": 4000}),
)
PARTS = tuple({soc.model: soc for soc in reversed(SOCS) if soc.has_model}.values())[::-1]  # one of those that are alike


@dataclass(frozen=True, slots=True)
class Held:
    """One network on one part that was held out."""

    soc: Soc
    base: Soc
    own_us: float
    replayed_us: float
    base_us: float

    @property
    def ratio(self) -> float:
        return self.own_us / self.replayed_us


def microseconds(found: Compilation, rates: tuple[Rates, Rates] | None = None) -> float:
    total = 0.0
    for graph in found.graphs:
        if graph.timeline is None:
            raise ValueError(f"{graph.name} has no timeline; expected a part that the model knows")
        line = graph.timeline
        if rates is not None:
            line = scaled(line, graph.schematic, *rates, macs_of(graph, found))
        total += line.end / line.clock_hz
    return total * 1e6


def held_out(model: Path) -> Iterator[Held]:
    """Every part that takes the network, by the nearest other that takes it."""
    made: dict[tuple[int, int | None], Compilation | None] = {}

    def compiled(soc: Soc, size: int | None) -> Compilation | None:
        if (soc.id, size) not in made:
            try:
                made[soc.id, size] = compile_model(model, HtpOptions(soc, vtcm_mb=size), shapes={})
            except ProfilerError:
                made[soc.id, size] = None
        return made[soc.id, size]

    for soc in PARTS:
        own = compiled(soc, None)
        for base in nearest(soc, PARTS) if own is not None else ():
            found = compiled(base, soc.vtcm_mb if soc.vtcm_mb < base.vtcm_mb else None)
            if own is not None and found is not None and len(found.graphs) == len(own.graphs):
                rates = Rates.of(hexagon_of(base)), Rates.of(hexagon_of(soc))
                yield Held(soc, base, microseconds(own), microseconds(found, rates), microseconds(found))
                break


def networks(folder: Path, given: list[str]) -> Iterator[Path]:
    for name, precision, options in ZOO:
        size = f"-{options['layers']}-layers" if options else ""
        path = folder / f"{name}{size}-{precision}.onnx"
        make(Recipe(name, precision=precision, options=options), path)
        yield path
    for place in given:
        yield from sorted(Path(place).glob("*.onnx"))


def main() -> None:
    found: list[Held] = []
    bases = {soc.id: nearest(soc, PARTS)[0].label for soc in PARTS}
    print("| network |", " | ".join(f"{soc.label} from {bases[soc.id]}" for soc in PARTS), "|")
    print("|---" * (len(PARTS) + 1) + "|")
    with TemporaryDirectory() as folder:
        for model in networks(Path(folder), sys.argv[1:]):
            rows = {held.soc.id: held for held in held_out(model)}
            found += rows.values()
            cells = [_cell(rows.get(soc.id), bases[soc.id]) for soc in PARTS]
            if rows:
                print(f"| {model.stem} |", " | ".join(cells), "|", flush=True)
    ratios, plain = [held.ratio for held in found], [held.own_us / held.base_us for held in found]
    tenths = quantiles(ratios, n=10)
    spread = (
        f"10th to 90th percentile {tenths[0]:.2f} to {tenths[-1]:.2f}, least {min(ratios):.2f}, most {max(ratios):.2f}"
    )
    print(f"\n{len(ratios)} pairs: median {median(ratios):.2f}, {spread}")
    print(f"half are off by a factor of {_off(ratios):.2f} or more; without scaling, of {_off(plain):.2f}")


def _cell(held: Held | None, base: str) -> str:
    if held is None:
        return "—"
    return f"{held.ratio:.2f}" + ("" if held.base.label == base else f" ({held.base.label})")


def _off(ratios: list[float]) -> float:
    """The factor that half of them are off by, or more."""
    return exp(median(abs(log(ratio)) for ratio in ratios))


if __name__ == "__main__":
    main()
