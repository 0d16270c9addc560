"""The verb `validate`."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from ..commands.command import write_result
from ..commands.progress import step
from .calibrate import add_measurements, writes


class ValidateCommand:
    """Predict what was measured and say how far off the predictions are: by precision, chip and network, by what rules
    the time, and the five worst. Fails where a limit is passed."""

    examples = """\
examples:
  opscope validate mychip.toml --from latencies.csv
  opscope validate mychip.toml --from latencies.csv --max-median 20% --min-coverage 85%
  opscope validate mychip.toml --from latencies.csv --json

Rows of other chips (column chip) are left out where some are of the target. Exit codes: 0 fine, 1 a limit is passed,
2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_measurements(parser)
        parser.add_argument("--max-median", type=_share, metavar="P", help="fail above this median error: 20%%")
        parser.add_argument("--max-p90", type=_share, metavar="P", help="fail above this 90th percentile of errors")
        parser.add_argument("--min-coverage", type=_share, metavar="P", help="fail if ranges hold less often: 85%%")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: Namespace) -> int:
        from .. import api
        from ..calibration.calibrate import judged
        from ..views.json.calibration_json import errors_json
        from ..views.text.calibration_text import errors_text

        rows, skipped = api.validate(args.target, args.sources, models=args.models, progress=step)
        step("")
        found = judged(rows)
        limits = (
            ("median error", found.median_error, args.max_median, True),
            ("90th percentile of errors", found.p90_error, args.max_p90, True),
            ("coverage", found.coverage or 0.0, args.min_coverage, False),
        )
        failed = [
            f"FAIL: {name} is {value:.1%}; expected {'at most' if most else 'at least'} {limit:.1%}"
            for name, value, limit, most in limits
            if limit is not None and (value > limit if most else value < limit)
        ]
        if args.json:
            document = {**errors_json(args.target, rows, skipped), "failed": failed}
            write_result(writes(json.dumps(document, indent=1) + "\n"), None)
        else:
            lines = [*errors_text(rows, skipped), *failed]
            write_result(writes("\n".join(lines) + "\n"), None)
        return 1 if failed else 0


def _share(text: str) -> float:
    """A share: 20%, or 0.2."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise ArgumentTypeError(f"{text!r} is no share; expected 20% or 0.2")
    return value


COMMANDS = {"validate": ValidateCommand()}
