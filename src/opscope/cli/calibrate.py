"""The verb `calibrate`."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from ..commands.command import write_result
from ..commands.progress import step
from ..core.errors import UsageError


class CalibrateCommand:
    """Fit the figures of a target that have a range to what was measured, inside that range and pulled toward the data
    sheet. Writes the new target, with the source and the range of each fitted figure, and beside it what was predicted
    for each measurement. Predictions on it then carry a range that held for networks left out of the fit."""

    examples = """\
examples:
  opscope calibrate mychip.toml --from latencies.csv -o mychip-fitted.toml
  opscope calibrate family-any --from three.csv --models nets/ -o my-phone.toml
  opscope calibrate family.toml --from all.csv --by chip -o targets/
  opscope report model.onnx --target ./mychip-fitted.toml

Columns of a CSV file: model (a file, or its name in --models) and latency_ms; also chip, precision, batch, cores and
shapes (input=1x3x224x224;mask=1x128). A run that was measured counts as one row.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_measurements(parser)
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the fitted target; a folder with --by")
        parser.add_argument("--by", choices=["chip"], help="fit the chips of a column together: a target for each")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: Namespace) -> int:
        from .. import api
        from ..calibration.write import Writer
        from ..views.json.calibration_json import calibrated_json
        from ..views.text.calibration_text import calibrated_text

        if args.output is None:
            raise UsageError("calibrate: no -o; expected the file that gets the fitted target")
        found = api.calibrate(args.target, args.sources, models=args.models, by_chip=args.by is not None, progress=step)
        step("")
        source = ", ".join(Path(path).name for path in args.sources)
        writer = Writer(found, args.target, source)
        document = calibrated_json(found)
        text = json.dumps(document, indent=1) + "\n"
        if args.by is None:
            args.output.parent.mkdir(parents=True, exist_ok=True)
            writer.target(args.output)
            beside = args.output.with_suffix(".calibration.json")
        else:
            writer.chips(args.output)
            beside = args.output / "calibration.json"
        write_result(writes(text), beside)
        lines = [*calibrated_text(found), "", f"written: {args.output}, {beside}"]
        write_result(writes(text if args.json else "\n".join(lines) + "\n"), None)
        return 0


def writes(text: str) -> Callable[[TextIO], None]:
    """What `write_result` asks for, of a text that is there."""

    def write(out: TextIO) -> None:
        out.write(text)

    return write


def add_measurements(parser: ArgumentParser) -> None:
    """The target and the measurements, as `calibrate` and `validate` take them."""
    parser.add_argument("target", metavar="TARGET", help="name or TOML file")
    parser.add_argument(
        "--from",
        dest="sources",
        nargs="+",
        action="extend",
        required=True,
        metavar="FILE.csv|RUN",
        help="measurements",
    )
    parser.add_argument("--models", metavar="DIR", help="folder of the models that rows name (default: of the file)")


COMMANDS = {"calibrate": CalibrateCommand()}
