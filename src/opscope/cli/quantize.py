"""The verb `quantize`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..commands.backend_options import add_option, all_options, known_options, source_of_verb
from ..commands.command import command_line, keep_input, positive, write_result
from ..commands.options import add_options, options_from
from ..commands.progress import step
from ..core.errors import UsageError
from ..options import QuantizeOptions, options_of

_OWN = {name.replace("_", "-") for name in options_of(QuantizeOptions)}  # what means the copy here, and not its profile


class QuantizeCommand:
    """Write a quantised copy (QDQ) of an ONNX model with ONNX Runtime's tools, calibrated with your data. Prints the
    error of its outputs against the float model, and the layers that cause it. With a target or a backend, model and
    copy are profiled there."""

    examples = """\
examples:
  opscope quantize model.onnx --data inputs.npz -o model.w8a8.onnx
  opscope quantize model.onnx --data samples/ --precision w8a16 --json
  opscope quantize model.onnx --random 8 --target aic100-std

--data is an .npz with an array per input, N samples along the first axis; or a folder of such files, or of .npy files
where the model has one input. Images are not decoded. Exit codes: 0 fine, 2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        known = ", ".join(known_options())
        parser.usage = "opscope quantize MODEL --data DIR|F.npz [-o FILE] [--precision P] [OPTION …]"
        parser.add_argument("model", type=Path, metavar="MODEL", help="ONNX file")
        parser.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="file to write (default: MODEL.PRECISION.onnx)"
        )
        add_options(parser, QuantizeOptions)
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--top", type=positive, default=10, metavar="N", help="layers to print (default 10)")
        parser.add_argument("--all", action="store_true", help="print every layer that is kept")
        group = parser.add_argument_group("before and after")
        group.add_argument(
            "--target", metavar="T", help="profile model and copy on this target (see `opscope targets`)"
        )
        group.add_argument(
            "--backend",
            metavar="B",
            help=f"make the copy for this backend, and profile both on it: {known}",
        )
        group.add_argument("--runs", type=Path, metavar="DIR", help="folder for the runs `before` and `after`")
        for option in all_options():
            if option.name not in _OWN:
                add_option(group, option)

    def run(self, args: Namespace) -> int:
        """Make the copy, print what it is worth, and profile both where asked for."""
        from .. import api
        from ..views.json.quantized_json import QuantizedJson
        from ..views.text.quantized_text import QuantizedText

        options = options_from(args, QuantizeOptions)
        output = args.output or Path(f"{args.model.name.removesuffix('.onnx')}.{options.precision}.onnx")
        keep_input(output, args.model)
        if args.runs is not None and args.target is None and args.backend is None:
            raise UsageError("--runs: nothing is profiled; expected --target or --backend too")
        chosen, note = source_of_verb(args, _OWN)
        if note:
            print(f"note: {note}", file=sys.stderr)
        result = api.quantize(
            args.model,
            output,
            options,
            target=args.target,
            backend=args.backend,
            backend_options=chosen or {},
            runs=args.runs,
            command=command_line(),
            step=step,
        )
        step("")
        view = QuantizedJson() if args.json else QuantizedText(top=None if args.all else args.top)
        write_result(lambda out: view.render(result, out), None)
        for place in (output, args.runs):
            if place is not None:
                print(f"wrote {place}", file=sys.stderr)
        return 0


COMMANDS = {"quantize": QuantizeCommand()}
