"""Calibrated → target files: one that extends the target, or one for each chip and one for any other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import UsageError, printable
from ..core.files import write_bytes
from ..machine.calibration import Calibration
from ..machine.catalogue import figures
from ..machine.target import Figure, Target
from .calibrate import SOURCE, Calibrated
from .quantities import Quantity
from .target_file import extends_of, language_models_text, table_text, target_text

ANY_CHIP = "any"
SHEETS = "data_sheets"  # folder beside targets, of what they were before a fit
LANGUAGE_MODELS_SOURCE = "llm-fit"
LEAST_SHARE = 0.01  # of the time of some language model, that a figure of theirs rules


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the targets that a fit found.

    Args:
        extends: name or file of the target that they extend.
        source: what the measurements are, for people.
    """

    found: Calibrated
    extends: str
    source: str

    def target(self, path: Path) -> None:
        """The target that all rows are of."""
        write_bytes(path, self._text(path, path.stem, self.found.base.title, 0).encode())

    def chips(self, folder: Path) -> list[Path]:
        """A target for each chip, and one for any other of the family; returns the files."""
        folder.mkdir(parents=True, exist_ok=True)
        base, paths = self.found.base, []
        for number, chip in enumerate(self.found.machines):
            if not chip or Path(chip).name != chip or chip.startswith("."):
                raise UsageError(f"chip {printable(repr(chip))}: no name for a file; expected letters, digits, dashes")
            title = self.found.targets[number].title
            paths.append(folder / f"{chip}.toml")
            text = self._text(paths[-1], chip, f"{chip}: {base.title}" if title == base.title else title, number)
            write_bytes(paths[-1], text.encode())
        paths.append(folder / f"{base.name}-{ANY_CHIP}.toml")
        write_bytes(paths[-1], self._text(paths[-1], paths[-1].stem, f"any other: {base.title}", None).encode())
        return paths

    def _text(self, path: Path, name: str, title: str, machine: int | None) -> str:
        found = self.found
        table = found.shared if machine is None else found.figures[machine]
        sheet_file = None if machine is None else _sheet(path.parent, found.machines[machine])
        own = {} if machine is None or sheet_file else _own_figures(found.targets[machine], found.base)
        sheet = found.base if machine is None else found.targets[machine]
        sources = {figure.source: sheet.sources[figure.source] for figure in own.values()}
        source = LANGUAGE_MODELS_SOURCE if found.of_language_models else SOURCE
        head = target_text(
            found.base,
            name=name,
            title=title,
            extends=sheet_file or self._extends(path.parent, machine),
            figures={} if found.of_language_models else {**own, **table},
            sources={**({} if found.of_language_models else sources), source: self.told(machine)},
        )
        if found.of_language_models:
            return "\n".join([head, self.language_models(machine)])
        return "\n".join([head, *(text for quantity in found.found for text in self._judged(quantity, machine))])

    def _judged(self, quantity: Quantity, machine: int | None) -> list[str]:
        """The tables of how a quantity was fitted and judged; those of latencies are the target's own."""
        table = "" if quantity is Quantity.LATENCY else f"{quantity.value}."
        told = self.found.told(quantity)
        found = self.found.validation(machine, quantity) if told.judges else None
        judged = [] if found is None else [table_text(f"{table}validation", found)]
        return [table_text(f"{table}calibration", self._calibration(machine, quantity)), *judged]

    def _extends(self, folder: Path, machine: int | None) -> str:
        """What a file extends: for language models the target of the chip itself, which says all else of it."""
        chip = None if machine is None else self.found.machines[machine]
        if self.found.of_language_models and machine is not None and self.found.targets[machine].name == chip:
            return chip
        return extends_of(self.extends, folder)

    def told(self, machine: int | None) -> str:
        """What the figures were fitted to."""
        found = self.found
        judged = {quantity: found.validation(machine, quantity) for quantity in found.found}
        chips, own = len(found.machines), judged.pop(Quantity.LATENCY)
        rows = found.calibration.rows
        together = f", with {rows} of {chips} chips together" if chips > 1 and machine is not None else ""
        others = "".join(f", {each.rows} of {quantity.words}" for quantity, each in judged.items() if each is not None)
        counted = f"{own.rows} measurements of {own.networks} networks" if own is not None else "none of its own"
        return f"fitted to {counted}{others} ({self.source}){together}; ranges are what they leave open"

    def _calibration(self, machine: int | None, quantity: Quantity = Quantity.LATENCY) -> Calibration:
        """That of a machine; None: of one that nothing was measured of."""
        return self.found.told(quantity).calibrations[-1 if machine is None else machine]

    def language_models(self, machine: int | None) -> str:
        """Tables of figures that hold for language models: those that any of them depends on."""
        found = self.found
        table = found.shared if machine is None else found.figures[machine]
        figures = {
            key: replace(figure, source=LANGUAGE_MODELS_SOURCE)
            for key, figure in table.items()
            if found.calibration.seen.get(key, 0.0) >= LEAST_SHARE
        }
        own = found.validation(machine) if found.judges else None
        judged = None if own is None else replace(own, source=LANGUAGE_MODELS_SOURCE)
        return language_models_text(figures, self._calibration(machine), judged)


def _sheet(folder: Path, chip: str) -> str | None:
    """The data sheet of a chip that lies beside its target, as the target names it."""
    return f"{SHEETS}/{chip}.toml" if chip and (folder / SHEETS / f"{chip}.toml").is_file() else None


def _own_figures(target: Target, base: Target) -> dict[str, Figure]:
    """Figures of a chip's data sheet that differ from those of its family."""
    before = dict(figures(base))
    return {key: figure for key, figure in figures(target) if key not in before or figure.value != before[key].value}
