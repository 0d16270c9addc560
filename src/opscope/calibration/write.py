"""Calibrated → target files: one that extends the target, or one for each chip and one for any other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError, printable
from ..core.files import write_bytes
from ..machine.catalogue import figures
from ..machine.target import Figure, Target
from .calibrate import SOURCE, Calibrated
from .target_file import extends_of, table_text, target_text

ANY_CHIP = "any"


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
        found, judged = self.found, self.found.validation(machine)
        told, chips = found.calibration, len(found.machines)
        together = f", with {told.rows} of {chips} chips together" if chips > 1 and machine is not None else ""
        fitted = f"fitted to {judged.rows} measurements of {judged.networks} networks ({self.source}){together}"
        table = found.shared if machine is None else found.figures[machine]
        own = {} if machine is None else _own_figures(found.targets[machine], found.base)
        sheet = found.base if machine is None else found.targets[machine]
        sources = {figure.source: sheet.sources[figure.source] for figure in own.values()}
        head = target_text(
            found.base,
            name=name,
            title=title,
            extends=extends_of(self.extends, path.parent),
            figures={**own, **table},
            sources={**sources, SOURCE: f"{fitted}; ranges are what they leave open"},
        )
        tables = [table_text("calibration", told)]
        if found.predictions and found.predictions[0].left_out_s is not None:
            tables.append(table_text("validation", judged))
        return "\n".join([head, *tables])


def _own_figures(target: Target, base: Target) -> dict[str, Figure]:
    """Figures of a chip's data sheet that differ from those of its family."""
    before = dict(figures(base))
    return {key: figure for key, figure in figures(target) if key not in before or figure.value != before[key].value}
