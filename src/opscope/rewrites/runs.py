"""Runs before and after, with what every rewrite that was tried would gain, and a page with both timelines."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..changes.profile_model import profile_by
from ..core.files import write_bytes, write_whole
from ..recording.finding import WHAT_IF, Finding, Findings, Prediction, Trial
from ..workflows.analysing import write_findings
from ..workflows.record import Recorded, page_of
from ..workflows.viewing import write_compare_page
from .judge import Judge, Judged
from .outcome import Optimized, Tried
from .views import step_rows, verdict_line, words_below

BEFORE, AFTER, COMPARED, PAGE = "before", "after", "compare.html", "timelines.html"


def write_runs(found: Optimized, judge: Judge, model: Path, *, command: Sequence[str], created: str) -> dict[str, str]:
    """Leave them in the folder of a search; what lies there, by name."""
    folder = Path(found.folder)
    runs: dict[str, Recorded] = {}
    for name, file in ((BEFORE, model), (AFTER, Path(found.output))):
        runs[name] = profile_by(
            judge.backend,
            file,
            judge.target,
            judge.options,
            shapes=judge.shapes or None,
            folder=folder / name,
            trials=False,
            command=tuple(command),
            created=created,
        )
    before = runs[BEFORE]
    told = with_rewrites(before.findings, (*found.steps, *found.tried), before=found.before)
    write_findings(folder / BEFORE, told)
    for name, data in page_of(before.run, told).items():
        write_bytes(folder / BEFORE / name, data)
    labelled = [(name, recorded.run) for name, recorded in runs.items()]
    write_whole(folder / COMPARED, lambda out: write_compare_page(labelled, out))
    write_bytes(folder / PAGE, _page(found).encode())
    return {BEFORE: BEFORE, AFTER: AFTER, "comparison": COMPARED, "timelines": PAGE}


def with_rewrites(findings: Findings, tried: Sequence[Tried], *, before: Judged | None) -> Findings:
    """Findings with the gain of rewrites that were judged on the model as it was, alone."""
    alone = [each for each in tried if not each.with_ and each.speedup is not None and each.before == before]
    trials = [
        Trial(told(each.rewrite, len(each.sites)), each.after.latency_ns, each.speedup)
        for each in alone
        if each.after is not None and each.after.latency_ns is not None and each.speedup is not None
    ]
    trials.sort(key=lambda trial: trial.latency_ns)
    return replace(
        findings,
        findings=tuple(_predicted(finding, alone) for finding in findings.findings),
        trials=(*findings.trials, *trials),
    )


def told(rewrite: str, places: int) -> str:
    """As findings call a rewrite."""
    return f"opscope optimize: {rewrite} ({places} {'place' if places == 1 else 'places'})"


def _predicted(finding: Finding, alone: Sequence[Tried]) -> Finding:
    """With the best gain of a rewrite that touches its ops, proven."""
    ops = set(finding.ops)
    best = None
    for each in alone:
        touched = {name for site in each.sites for name in site.removed}
        if each.before and each.after and each.before.latency_ns and each.after.latency_ns and touched & ops:
            gain = each.before.latency_ns - each.after.latency_ns
            if gain > (best.gain_ns if best else 0):
                best = Prediction(gain, each.after.latency_ns, WHAT_IF, told(each.rewrite, len(each.sites)))
    return finding if best is None else replace(finding, predicted=best)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 1rem 2rem; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 0.2rem 0.8rem; text-align: right; border-bottom: 1px solid #8886; }}
th:first-child, td:first-child {{ text-align: left; }}
iframe {{ width: 100%; height: 34rem; border: 1px solid #8886; }}
</style>
</head>
<body>
<h1>{title}</h1>
<table><thead><tr>{header}</tr></thead><tbody>
{rows}
</tbody></table>
{notes}
<p><a href="{compared}">What changed, op by op</a></p>
<h2>Before</h2>
<iframe src="{before}/report.html#timeline" title="Timeline before"></iframe>
<h2>After</h2>
<iframe src="{after}/report.html#timeline" title="Timeline after"></iframe>
</body>
</html>
"""
_HEADER = ("rewrite", "places", "ops", "before", "after", "times", "in all", "error")


def _page(found: Optimized) -> str:
    return _PAGE.format(
        title=html.escape(f"{Path(found.output).name}: {verdict_line(found)}"),
        header="".join(f"<th>{name}</th>" for name in _HEADER),
        rows="\n".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in step_rows(found)
        ),
        notes="\n".join(f"<p>{html.escape(words)}</p>" for words in words_below(found)),
        compared=COMPARED,
        before=BEFORE,
        after=AFTER,
    )
