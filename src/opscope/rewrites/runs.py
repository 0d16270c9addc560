"""Runs before and after, with what every rewrite that was tried would gain, and a page with both timelines."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
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
from .views import STEPS_HEADER, TRIED_HEADER, head_rows, step_rows, told_time, tried_rows, verdict_line, words_below

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
        if each.before and each.after and each.speedup is not None and touched & ops:
            gain = each.before.time_ns - each.after.time_ns
            if gain > (best.gain_ns if best else 0):
                best = Prediction(gain, each.after.time_ns, WHAT_IF, told(each.rewrite, len(each.sites)))
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
body {{ font: 14px/1.5 system-ui, sans-serif; margin: 1rem 2rem; }}
h1 {{ font-size: 1.4rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.1rem; margin: 1.5rem 0 0.3rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 0.2rem 0.8rem; text-align: right; border-bottom: 1px solid #8886; white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
.tried td:last-child, .tried th:last-child {{ text-align: left; white-space: normal; }}
.bar {{ height: 0.6rem; min-width: 1px; background: #2e75b6; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: 0.5rem 0; }}
dt {{ opacity: 0.7; }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
iframe {{ width: 100%; height: 34rem; border: 1px solid #8886; }}
</style>
</head>
<body>
<h1>{title}</h1>
<dl>{facts}</dl>
<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>
{rows}
</tbody></table></div>
{notes}
{tried}
<p><a href="{compared}">What changed, op by op</a></p>
{timelines}
</body>
</html>
"""
_TIMELINE = """<h2>{name}: {time}</h2>
<div class="bar" style="width: {share:.3f}%" title="at the scale of the longer of both"></div>
<iframe src="{folder}/report.html#timeline" title="Timeline {folder}"></iframe>"""
_TRIED = """<details><summary>Tried, and left out: {count}</summary>
<div class="scroll"><table class="tried"><thead><tr>{header}</tr></thead><tbody>
{rows}
</tbody></table></div></details>"""


def _page(found: Optimized) -> str:
    tried = tried_rows(found)
    left_out = _TRIED.format(count=len(tried), header=_cells(TRIED_HEADER, "th"), rows=_table(tried)) if tried else ""
    return _PAGE.format(
        title=html.escape(f"{Path(found.output).name}: {verdict_line(found)}"),
        facts="".join(f"<dt>{name}</dt><dd>{html.escape(words)}</dd>" for name, words in head_rows(found)[:-1]),
        header=_cells(STEPS_HEADER, "th"),
        rows=_table(step_rows(found)),
        notes="\n".join(f"<p>{html.escape(words)}</p>" for words in words_below(found)),
        tried=left_out,
        compared=COMPARED,
        timelines="\n".join(_timelines(found)),
    )


def _timelines(found: Optimized) -> Iterator[str]:
    """Both, with bars at one scale: each timeline fills its own width."""
    times = [0 if judged is None else judged.time_ns for judged in (found.before, found.after)]
    for folder, judged, time_ns in zip((BEFORE, AFTER), (found.before, found.after), times, strict=True):
        share = 100 * time_ns / max(*times, 1)
        yield _TIMELINE.format(
            name=folder.capitalize(), time=html.escape(told_time(judged)), share=share, folder=folder
        )


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)


def _cells(row: Sequence[str], kind: str) -> str:
    return "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in row)
