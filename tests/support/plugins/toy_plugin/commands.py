"""opscope toy"""

from argparse import ArgumentParser, Namespace


class ToyCommand:
    """Say hello."""

    examples = """\
examples:
  opscope toy --loud
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--loud", action="store_true", help="in capitals")

    def run(self, args: Namespace) -> int:
        print("HELLO" if args.loud else "hello")
        return 0


COMMANDS = {"toy": ToyCommand()}
