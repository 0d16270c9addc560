"""opscope run"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from ..commands.command import positive
from ..commands.outcomes import report_outcome
from ..commands.progress import counted

PROFILES = ("stats", "trace", "latency", "raw_device_stats")


class RunCommand:
    """Execute a compiled program on the simulated device, many times, and write what is asked for.
    Each activation has its cores to itself: a program on c of C cores runs floor(C/c) activations at once; more of
    them queue. Only profiled inferences are simulated in full; the others take the steady time, varied by the seed."""

    examples = """\
examples:
  opscope run build
  opscope run build --num-iter 100 --profile raw_device_stats --num-samples 5 --start-iter 1 --out-dir stats
  opscope run build --time 20 --activations 7 --profile latency --profile trace --out-dir stats
  opscope run build --input x=x.npy --save-outputs
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("program", type=Path, metavar="DIR", help="folder that `opscope compile` wrote")
        parser.add_argument(
            "--input",
            type=_named_file,
            action="append",
            default=[],
            metavar="NAME=FILE.npy",
            help="an input; for none or for all of them (default: bounded random)",
        )
        parser.add_argument("--save-outputs", action="store_true", help="run the original model, write outputs as .npy")
        parser.add_argument("--num-iter", type=positive, metavar="N", help="inferences per activation (default 40)")
        parser.add_argument(
            "--time", type=_number, metavar="S", help="seconds of simulated time to keep enqueueing for"
        )
        parser.add_argument("--activations", type=positive, default=1, metavar="N", help="instances (default 1)")
        parser.add_argument(
            "--set-size",
            type=positive,
            default=10,
            metavar="N",
            help="inferences on their way at once, per activation (default 10)",
        )
        parser.add_argument(
            "--threads", type=positive, default=4, metavar="N", help="host threads per activation (default 4)"
        )
        parser.add_argument(
            "--seed", type=_count, default=0, metavar="N", help="the same seed, the same bytes (default 0)"
        )
        _add_profiling(parser)

    def run(self, args: Namespace) -> int:
        from .. import api

        outcome = api.run(
            args.program,
            inputs=dict(args.input),
            num_iter=args.num_iter,
            time=args.time,
            activations=args.activations,
            set_size=args.set_size,
            threads=args.threads,
            profile=args.profile,
            out_dir=args.out_dir,
            num_samples=args.num_samples,
            start_iter=args.start_iter,
            start_delay=args.start_delay,
            seed=args.seed,
            save_outputs=args.save_outputs,
            progress=counted("running"),
        )
        return report_outcome(outcome)


def _add_profiling(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("profiling")
    group.add_argument(
        "--profile",
        choices=PROFILES,
        action="append",
        default=[],
        help="stats: text with host stages; trace: Chrome JSON with host stages; latency: CSV; raw_device_stats: "
        "stats buffers for `opscope opstats`; may be repeated",
    )
    group.add_argument(
        "-o", "--out-dir", type=Path, default=Path(), metavar="DIR", help="folder, must exist (default: here)"
    )
    group.add_argument(
        "--num-samples",
        type=positive,
        default=1,
        metavar="N",
        help="inferences of each activation to profile (default 1)",
    )
    group.add_argument(
        "--start-iter", type=_count, default=0, metavar="N", help="first inference to profile (default 0)"
    )
    group.add_argument(
        "--start-delay",
        type=_number,
        default=0.0,
        metavar="MS",
        help="milliseconds of simulated time before profiling starts",
    )


def _named_file(text: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=FILE.npy")
    return name, Path(file)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


COMMANDS = {"run": RunCommand()}
