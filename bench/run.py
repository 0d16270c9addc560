"""Run all benchmarks, or those named: `python bench/run.py report startup`. Nothing fails; goals are met or missed."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

ALL = ("startup", "report", "growth", "compile", "simulate", "compare", "analyze", "annotate", "fleet")


def run(name: str, passed_on: list[str]) -> tuple[bool, list[dict[str, object]]]:
    """One benchmark, in a process of its own so that its memory is its own: did it finish, and its rows."""
    with TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        script = Path(__file__).with_name(f"{name}.py")
        done = subprocess.run([sys.executable, str(script), *passed_on, "--json", str(rows)], check=False)
        return done.returncode == 0, json.loads(rows.read_text()) if rows.exists() else []


def summary(results: dict[str, tuple[bool, list[dict[str, object]]]]) -> str:
    lines = ["", "Goals"]
    for name, (finished, rows) in results.items():
        judged = [row for row in rows if row["met"] is not None]
        missed = [str(row["what"]) for row in judged if not row["met"]]
        line = f"  {name:<9} {len(judged) - len(missed)} of {len(judged)} met"
        line += f"; missed: {'; '.join(missed)}" if missed else ""
        lines.append(line + ("" if finished else "; DID NOT FINISH"))
    return "\n".join(lines)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)} (default: all)")
    parser.add_argument("--rounds", default="7", help="runs of each side (default 7)")
    parser.add_argument("--peers", action="store_true", help="also the peers that take minutes")
    parser.add_argument("--peer-seconds", default="120", help="stop such a peer after this (default 120)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all rows here")
    options = parser.parse_args()
    unknown = set(options.names) - set(ALL)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not known; expected of {', '.join(ALL)}")
    passed_on = ["--rounds", options.rounds, "--peer-seconds", options.peer_seconds, *["--peers"] * options.peers]
    results = {name: run(name, passed_on) for name in options.names or ALL}
    print(summary(results))
    if options.json:
        options.json.write_text(
            json.dumps({name: rows for name, (_, rows) in results.items()}, indent=1, ensure_ascii=False) + "\n"
        )


if __name__ == "__main__":
    main()
