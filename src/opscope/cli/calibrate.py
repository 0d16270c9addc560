"""The verbs `calibrate` and `validate`: a target and measurements."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..commands.command import write_result
from ..commands.progress import step
from ..core.errors import UsageError

if TYPE_CHECKING:
    from ..calibration.quantities import Quantity
    from ..machine.calibration import Validation


class CalibrateCommand:
    """Fit those figures of a target that have a range to measurements: inside the range, and close to the data sheet.
    Writes the new target with the source and the range of each fitted figure, and next to it the prediction for each
    measurement, as JSON and as an HTML page. Predictions on the new target have a range, tested on networks left out of
    the fit."""

    examples = """\
examples:
  opscope calibrate mychip.toml --from latencies.csv -o mychip-fitted.toml
  opscope calibrate family-any --from three.csv --models nets/ -o my-phone.toml
  opscope calibrate family.toml --from all.csv --by chip -o targets/
  opscope report model.onnx --target ./mychip-fitted.toml

Columns of a CSV file: model (a file, or its name in --models) and latency_ms; also energy_uj, ram_bytes, chip,
precision, batch, cores and shapes (input=1x3x224x224;mask=1x128). A measured run is used op by op.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_measurements(parser)
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the fitted target; a folder with --by")
        parser.add_argument(
            "--by", choices=["chip"], help="fit all chips of the column together, and write a target for each"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: Namespace) -> int:
        from .. import api
        from ..calibration.write import Writer
        from ..views.json.calibration_json import calibrated_json
        from ..views.page.calibration_page import CalibrationPage
        from ..views.text.calibration_text import calibrated_text

        if args.output is None:
            raise UsageError("calibrate: no -o; expected the file that gets the fitted target")
        found = api.calibrate(args.target, args.sources, models=args.models, by_chip=args.by is not None, progress=step)
        step("")
        source = ", ".join(Path(path).name for path in args.sources)
        writer = Writer(found, args.target, source)
        document = calibrated_json(found)
        if args.by is None:
            args.output.parent.mkdir(parents=True, exist_ok=True)
            writer.target(args.output)
            beside = args.output.with_suffix(".calibration.json")
        else:
            writer.chips(args.output)
            beside = args.output / "calibration.json"
        write_result(_writer(document), beside)
        page = beside.with_suffix(".html")
        write_result(lambda out: CalibrationPage().render(found, out), page)
        lines = [*calibrated_text(found), "", f"written: {args.output}, {beside}, {page}"]
        write_result(_writer(document if args.json else lines), None)
        return 0


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
        help="measurements: a CSV file, or a measured run",
    )
    parser.add_argument(
        "--models", metavar="DIR", help="folder of the models that rows name (default: that of the CSV file)"
    )


class ValidateCommand:
    """Compare predictions on a target with measurements: errors by precision, chip, network and dominant figure, and
    the five largest. Exits with 1 if a limit is exceeded."""

    examples = """\
examples:
  opscope validate mychip.toml --from latencies.csv
  opscope validate mychip.toml --from latencies.csv --max-median 20% --min-coverage 85%
  opscope validate mychip.toml --from latencies.csv --json

If some rows are of this target (column chip), rows of other chips are left out. Exit codes: 0 fine, 1 a limit is
exceeded, 2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_measurements(parser)
        parser.add_argument("--max-median", type=_share, metavar="P", help="exit 1 if the median error is larger: 20%%")
        parser.add_argument(
            "--max-p90", type=_share, metavar="P", help="exit 1 if the 90th percentile of errors is larger"
        )
        parser.add_argument(
            "--min-coverage", type=_share, metavar="P", help="exit 1 if fewer measurements lie in their range: 85%%"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: Namespace) -> int:
        from .. import api
        from ..calibration.calibrate import judged
        from ..calibration.validate import of_quantities
        from ..views.json.calibration_json import errors_json
        from ..views.text.calibration_text import errors_text

        rows, skipped = api.validate(args.target, args.sources, models=args.models, progress=step)
        step("")
        failed = [line for quantity, some in of_quantities(rows) for line in _failed(quantity, judged(some), args)]
        document = {**errors_json(args.target, rows, skipped), "failed": failed}
        write_result(_writer(document if args.json else [*errors_text(rows, skipped), *failed]), None)
        return 1 if failed else 0


def _writer(found: Mapping[str, object] | Sequence[str]) -> Callable[[TextIO], None]:
    """What `write_result` asks for: of a document, or of lines."""
    from ..core.json_files import write_json

    if isinstance(found, Mapping):
        return lambda out: write_json(found, out)
    return lambda out: print(*found, sep="\n", file=out)


def _failed(quantity: Quantity, found: Validation, args: Namespace) -> list[str]:
    """Limits that the errors of a quantity pass. What is planned byte by byte has no range, and none to hold."""
    is_time = quantity.value == "latency"
    least = args.min_coverage if is_time or found.coverage is not None else None
    limits = [
        ("median error", found.median_error, args.max_median, True),
        ("90th percentile of errors", found.p90_error, args.max_p90, True),
        ("coverage", found.coverage or 0.0, least, False),
    ]
    what = "" if is_time else f" of {quantity.column}"
    return [
        f"FAIL: {name}{what} is {value:.1%}; expected {'at most' if most else 'at least'} {limit:.1%}"
        for name, value, limit, most in limits
        if limit is not None and (value > limit if most else value < limit)
    ]


def _share(text: str) -> float:
    """A share: 20%, or 0.2."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise ArgumentTypeError(f"{text!r} is no share; expected 20% or 0.2")
    return value


COMMANDS = {"calibrate": CalibrateCommand(), "validate": ValidateCommand()}
