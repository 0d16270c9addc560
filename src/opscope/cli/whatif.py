"""opscope whatif"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..commands.backend_options import add_option, attribute, merged
from ..commands.command import command_line, listed, write_result
from ..commands.options import add_options, options_from
from ..commands.progress import counted
from ..core.errors import UsageError
from ..core.manifest import Can
from ..options import WhatIfOptions


class WhatIfCommand:
    """Compile a model with every combination of some options, and show which is best, by the vendor's own compiler and
    performance model."""

    examples = """\
examples:
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from ..backends import registry as backends

        able = backends.names(Can.WHAT_IF)
        if not able:
            raise UsageError("whatif: no backend here can; expected a plug-in whose backend does (see docs/plugins.md)")
        parser.add_argument("model", type=Path, metavar="MODEL", help="ONNX file")
        parser.add_argument("--backend", default=able[0], choices=able, help=f"runtime (default {able[0]})")
        parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder for the runs, one per combination")
        add_options(parser, WhatIfOptions)
        parser.add_argument("--json", action="store_true", help="print JSON")
        group = parser.add_argument_group("choices, each a comma list")
        entries = [backends.find(name) for name in able]
        group.add_argument("--target", metavar="V,V,…", help="parts: names of `opscope targets` that the backend knows")
        for option in merged([o for entry in entries for o in entry.options if o.name in entry.axes]):
            add_option(group, option, several=True)

    def run(self, args: Namespace) -> int:
        """Compile every combination, print the table, and leave a run per point where asked for."""
        from .. import api
        from ..backends import registry as backends
        from ..views.text.what_if_views import WhatIfJson, WhatIfText

        names = backends.find(args.backend).axes
        if args.target:
            _name_parts(args)
        axes = {name: listed(name, getattr(args, attribute(name))) for name in names if getattr(args, attribute(name))}
        if not axes:
            raise UsageError(f"whatif: nothing to vary; expected at least one of {', '.join(f'--{a}' for a in names)}")
        result = api.what_if(
            args.model,
            axes,
            options_from(args, WhatIfOptions),
            backend=args.backend,
            runs=args.output,
            command=command_line(),
            progress=counted("compiling"),
        )
        view = WhatIfJson() if args.json else WhatIfText()
        write_result(lambda out: view.render(result, out), None)
        if args.output is not None:
            print(f"wrote {args.output}", file=sys.stderr)
        return 0


def _name_parts(args: Namespace) -> None:
    """Let the backend's option for parts say which targets are meant."""
    from ..backends import registry as backends
    from ..workflows import catalogue

    option = backends.find(args.backend).part
    if option not in backends.find(args.backend).axes:
        raise UsageError(f"--target: backend {args.backend} does not vary its part; expected other choices")
    if getattr(args, attribute(option)):
        raise UsageError(f"--target: --{option} is given too; expected one of them")
    chosen = [catalogue.choose(name, backend=args.backend).options[option] for name in listed("target", args.target)]
    setattr(args, attribute(option), ",".join(map(str, chosen)))


COMMANDS = {"whatif": WhatIfCommand()}
