"""opscope torq-compile, opscope torq-run-module, opscope iree-run-module"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from ....commands.vendor_command import say, show_help, take_all
from ....core.errors import printable
from ....recording.unknown import UnknownOp

RUN_EXAMPLES = """\
examples:
  opscope torq-run-module --device=torq --module=model.vmfb --input="1x1280xi8=0" --torq_profile=runtime.csv
  opscope torq-run-module --device=torq --module=model.vmfb --input=@x.npy --torq_profile_host=host.csv
"""


COMPILE_FLAGS = {  # parameter → what stands behind its flag, what it does
    "output": ("FILE", "the program, under the name asked for"),
    "profiling": ("", "write the compile-time table"),
    "timeline": ("FILE", "its name (timeline.csv)"),
    "phases": ("DIR", "what each pass left, and NAME.9.executable-targets.mlir"),
    "debug": ("DIR", "NAME_dispatch_0.mlirb, what annotate needs beside the runtime's log"),
    "hw": ("HW", "SL2610, SR200, or ID:LRAM_KB:SLICES:CSS:NSS[:DMA_BYTES_PER_CYCLE[:FACTOR]]"),
    "version": ("A|B|C", "columns of the table (A, the manual's)"),
    "precision": ("TYPE", "what float tensors run as, such as bf16; the slices have no f32"),
}
RUN_FLAGS = {
    "module": ("FILE", "what torq-compile wrote"),
    "input": ("BUFFER", "one per input: 1x1280xi8=0, 2x2xf32=[1 2][3 4], 4xi8=@raw.bin, @array.npy (zeros)"),
    "function": ("NAME", "checked against the compiled one"),
    "profile": ("FILE", "times of every NSS program"),
    "host": ("FILE", "events of the host"),
    "device": ("torq", "the only one"),
    "output": ("@FILE", "one per output: an array in .npy, else its bytes"),
    "seed": ("N", "chooses everything that varies (0)"),
}


REAL = "--real"  # the vendor's own tool instead of ours


def forward(program: str, words: Sequence[str]) -> int:
    """Run the vendor's tool on the same words; what it prints and its exit code are its own."""
    import subprocess

    from ....backends import environments
    from ..manifest import ENVIRONMENT

    tool = environments.found(ENVIRONMENT.name).programs[program]
    code = subprocess.run([str(tool), *(word for word in words if word != REAL)], check=False).returncode  # noqa: S603
    return 128 - code if code < 0 else code  # as a shell says that a signal ended it


class TorqCompileCommand:
    """The Torq compiler's command line, for the simulated device: a program under the name asked for, the estimated
    timeline as CSV, and the dump that `opscope annotate` takes. With --real the vendor's own compiler runs on the same
    words, where it is found (`opscope setup torq`)."""

    examples = """\
examples:
  opscope torq-compile fc.mlir -o model.vmfb --torq-enable-profiling --torq-dump-profiling=trace.csv
  opscope torq-compile fc.mlir -o model.vmfb --torq-hw=1:1024:4:coral_v1:nss_v1 --torq-enable-profiling --csv-version=C
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from .flags import COMPILE

        take_all(parser, COMPILE, COMPILE_FLAGS)
        parser.usage = f"{parser.prog} [{REAL}] MODEL -o FILE [--FLAG[=VALUE] …]"

    def run(self, args: Namespace) -> int:
        """Compile, and report ops without a cost and the files that were written."""
        from . import flags as torq

        if REAL in args.words:
            return forward("torq-compile", args.words)
        call = torq.compile_call(args.words)
        if call is None:
            return show_help(args)
        say(call.notes)
        scheduled, written = torq.compile_program(call)
        uncosted = scheduled.uncosted
        say(scheduled.notes)
        if uncosted:
            say(_uncosted(uncosted))
            if call.precision is None and any(op.reason.endswith("f32") for op in uncosted):
                say(["--precision=bf16 runs float tensors on the slices"])
        least = "at least " if uncosted else ""
        cycles, jobs = scheduled.timeline.total_cycles, len(scheduled.sequence.jobs)
        _summary(scheduled.program.clock_hz, cycles, jobs, "estimated", least)
        _wrote(written)
        return 0


class RunModuleCommand:
    """Run a program that `torq-compile` wrote on the simulated device. Times are simulated; outputs are computed from
    the model by a reference runtime. With --real the vendor's own tool runs on the same words, where it is found
    (`opscope setup torq`)."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.examples = RUN_EXAMPLES.replace("torq-run-module", tool)

    def add_arguments(self, parser: ArgumentParser) -> None:
        from .flags import RUN

        take_all(parser, RUN, RUN_FLAGS)
        parser.usage = f"{parser.prog} [{REAL}] --module=FILE [--input=BUFFER …] [--FLAG[=VALUE] …]"

    def run(self, args: Namespace) -> int:
        """Run, and print the outputs as the vendor's tool does."""
        from . import flags as torq
        from .sequenced import printed_outputs

        if REAL in args.words:
            return forward("torq-run-module", args.words)
        call = torq.run_call(args.words, tool=self.tool)
        if call is None:
            return show_help(args)
        say(call.notes)
        ran, written = torq.run_program(call)
        print(f"EXEC @{printable(ran.program.name)}")
        for line in printed_outputs(ran):
            print(line)
        if ran.outputs is None:
            say([f"outputs are not computed: {ran.reason}"])
        cycles, least = max((end for _, end in ran.bounds), default=0.0), ""
        if ran.uncosted:
            say(_uncosted(ran.uncosted))
            least = "at least "
        _summary(ran.program.clock_hz, cycles, len(ran.bounds), "simulated", least)
        _wrote(written)
        return 0


def _uncosted(ops: Sequence[UnknownOp]) -> Iterator[str]:
    """How many; of every type and reason how many, and the first of them."""
    yield (
        "1 op is not costed and takes no time here:"
        if len(ops) == 1
        else (f"{len(ops)} ops are not costed and take no time here:")
    )
    alike: dict[tuple[str, str], list[str]] = {}
    for op in ops:
        alike.setdefault((op.type, op.reason), []).append(op.name)
    for (kind, reason), names in alike.items():
        first = "" if len(names) == 1 else f"{len(names)} ops, first "
        yield f"  {printable(kind)} ({first}{printable(names[0])}): {printable(reason, 300)}"


def _summary(clock_hz: float, cycles: float, jobs: int, how: str, least: str = "") -> None:
    time, programs = cycles / clock_hz * 1e6, "NSS program" if jobs == 1 else "NSS programs"
    text = f"{least}{cycles:,.0f} cycles, {time:,.1f} us at {clock_hz / 1e6:g} MHz, {jobs} {programs} ({how})"
    print(text, file=sys.stderr)


def _wrote(paths: Sequence[object]) -> None:
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


COMMANDS = {
    "torq-compile": TorqCompileCommand(),
    "torq-run-module": RunModuleCommand("torq-run-module"),
    "iree-run-module": RunModuleCommand("iree-run-module"),
}
