"""Runs the steps of a composite action as a runner does: expressions, conditions, scripts by bash, a cache, files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_TEST = re.compile(r"([\w.-]+) (==|!=) '([^']*)'")


@dataclass
class Ran:
    """What a run of the action left."""

    code: int = 0  # of the first step that failed
    steps: list[str] = field(default_factory=list)  # those that ran
    log: str = ""
    kept: Path | None = None  # what was uploaded


def run_action(
    action: Mapping[str, object],
    inputs: Mapping[str, str],
    *,
    folder: Path,
    cache: Path,
    github: Mapping[str, str],
    variables: Mapping[str, str],
    skip: tuple[str, ...] = (),
) -> Ran:
    """Every step in order; after one that fails, those that run always."""
    known = {f"inputs.{name}": str(entry.get("default", "")) for name, entry in action["inputs"].items()}  # type: ignore[attr-defined]
    known |= {f"github.{name}": value for name, value in github.items()}
    known = {name: filled(value, known) for name, value in known.items()}
    known |= {f"inputs.{name}": value for name, value in inputs.items()}
    ran = Ran()
    for step in action["runs"]["steps"]:  # type: ignore[index]
        condition = str(step.get("if", ""))
        if step.get("id") in skip or (ran.code and "always()" not in condition) or not holds(condition, known):
            continue
        ran.steps.append(step["name"])
        if "run" in step:
            _script(step, known, ran, folder, variables)
        else:
            _use(step, known, ran, folder, cache)
    return ran


def filled(text: str, known: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda match: known.get(match[1], ""), text)


def holds(condition: str, known: Mapping[str, str]) -> bool:
    for term in filter(None, condition.split(" && ")):
        test = _TEST.fullmatch(term)
        if test is None:
            assert term == "always()", term
        elif (known.get(test[1], "") == test[3]) is not (test[2] == "=="):
            return False
    return True


def _script(
    step: Mapping[str, object], known: dict[str, str], ran: Ran, folder: Path, given: Mapping[str, str]
) -> None:
    script = str(step["run"])
    assert "${{" not in script, "an expression inside a script is an injection"
    output = folder.parent / "step-output"
    output.write_text("")
    own = {name: filled(str(value), known) for name, value in step.get("env", {}).items()}  # type: ignore[attr-defined]
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**clean(), **given, **own, "GITHUB_OUTPUT": str(output)},
        capture_output=True,
        text=True,
        check=False,
    )
    ran.log += done.stdout + done.stderr
    ran.code = ran.code or done.returncode
    for line in output.read_text().splitlines():
        name, _, value = line.partition("=")
        known[f"steps.{step['id']}.outputs.{name}"] = value


def _use(step: Mapping[str, object], known: Mapping[str, str], ran: Ran, folder: Path, cache: Path) -> None:
    name = str(step["uses"]).partition("@")[0]
    given = {key: filled(str(value), known) for key, value in step["with"].items()}  # type: ignore[attr-defined]
    place = folder / given.get("path", "")
    if name == "actions/cache/restore":
        entries = sorted(cache.glob(f"{given['restore-keys']}*"), key=lambda path: path.stat().st_mtime_ns)
        if entries:
            shutil.copytree(entries[-1], place)
    elif name == "actions/cache/save":
        shutil.copytree(place, cache / given["key"])
    elif name == "actions/upload-artifact":
        ran.kept = place
    else:
        assert name == "actions/setup-python", name


def clean() -> dict[str, str]:
    """The variables of this process, without those of a CI system, and our own programs first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI_", "GITLAB_"))}
    return kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"}
