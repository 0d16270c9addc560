"""A Run as one small piece of HTML for a notebook: no script, no style sheet, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ...core.provenance import Provenance
from ...core.units import UNKNOWN, format_digits, format_latency, format_ns, format_percent
from ...recording.finding import Findings
from ...recording.run import RunInfo
from ...recording.summary import OpTotal, Share, Summary
from ...recording.unknown import in_a_line
from .html_text import full_name, prose, short_name

MOST_OPS = 8
MOST_FINDINGS = 3
# Okabe and Ito's colours, told apart by colour-blind readers; all of them stand out on white and on black
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
_NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
_NAME = "text-align:left"
_TRACK = "display:flex;gap:1px;height:1em;margin:.4em 0 .1em"


def card(info: RunInfo, summary: Summary, findings: Findings | None) -> str:
    """Verdict, latency, where the time goes, and the costliest ops."""
    parts = (
        '<div style="max-width:60em">\n',
        *_head(info, summary, findings),
        *_bar(findings.breakdown if findings is not None else summary.breakdown),
        *_ops(summary.ops, info.provenance),
        *_causes(findings),
        "</div>\n",
    )
    return "".join(parts)


def _text(words: str) -> str:
    return escape(short_name(words))


def _titled(words: str) -> str:
    return f'<bdi title="{escape(full_name(words))}">{_text(words)}</bdi>'


def _head(info: RunInfo, summary: Summary, findings: Findings | None) -> Iterable[str]:
    """What ran where, its latency and what bounds it."""
    batch = UNKNOWN if info.batch is None else info.batch
    machine = f"{info.devices} × {info.cores} {'core' if info.cores == 1 else 'cores'}, batch {batch}"
    yield (
        f"<div><strong>{_titled(info.network)}</strong> on <strong>{_titled(info.target)}</strong> ({machine}) – "
        f"all times <em>{_text(info.obtained)}</em></div>\n"
    )
    latency = summary.latency
    parts = [f"latency <strong>{format_latency(latency.value_ns, latency.low_ns, None)}</strong>"]
    low, high = format_ns(latency.low_ns), format_ns(latency.high_ns)
    if UNKNOWN not in (low, high) and low != high:
        parts.append(f"range {low} – {high}")
    rate = summary.throughput_per_s
    if rate is not None:
        parts.append(f"{format_digits(rate)} per second")
    if findings is not None:
        parts.append(f"bound by <strong>{_text(findings.bound)}</strong>")
    yield f"<div>{' · '.join(parts)}</div>\n"
    if findings is not None and findings.unknown_ops:
        count = sum(op.op is not None for op in summary.ops)
        yield f"<div>{escape(prose(in_a_line(findings.unknown_ops, count)))}</div>\n"


def _bar(shares: Sequence[Share]) -> Iterable[str]:
    """The parts of the wall time side by side; the words stand below, so that colour is not all there is."""
    known = [share for share in shares if share.share > 0]
    if not known:
        return
    colours = [_COLOURS[min(number, len(_COLOURS) - 1)] for number in range(len(known))]
    blocks = "".join(
        f'<span title="{_text(share.cause)} {format_percent(share.share)}" '
        f'style="background:{colour};flex:{share.share:.6f} 0 0;min-width:1px"></span>'
        for share, colour in zip(known, colours, strict=True)
    )
    yield f'<div role="img" aria-label="where the time goes" style="{_TRACK}">{blocks}</div>\n'
    words = " ".join(
        f'<span style="margin-right:1em;white-space:nowrap"><span style="color:{colour}">■</span> {_text(share.cause)} '
        f"{format_ns(share.ns)} ({format_percent(share.share)})</span>"
        for share, colour in zip(known, colours, strict=True)
    )
    yield f"<div>{words}</div>\n"


def _ops(ops: Sequence[OpTotal], provenance: Provenance) -> Iterable[str]:
    """The table of the costliest ops."""
    if not ops:
        return
    shown = sorted(ops, key=lambda op: -(op.busy_ns or 0))[:MOST_OPS]
    heads = ("op", "type", "engine", "wall", "busy", "share")
    styles = (_NAME, _NAME, _NAME, _NUMBER, _NUMBER, _NUMBER)
    caption = f"costliest {len(shown)} of {len(ops):,} ops, {_text(provenance)}"
    yield f'<table style="margin-top:.6em"><caption style="{_NAME}">{caption}</caption>\n'
    yield f"<thead><tr>{_cells('th', heads, styles)}</tr></thead>\n<tbody>\n"
    for op in shown:
        row = (
            _titled(op.name),
            _text(op.type) or UNKNOWN,
            _text(op.engine) or UNKNOWN,
            format_ns(op.wall_ns),
            format_ns(op.busy_ns),
            format_percent(op.share),
        )
        yield f"<tr>{_cells('td', row, styles)}</tr>\n"
    yield "</tbody></table>\n"


def _cells(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    return "".join(f'<{tag} style="{style}">{cell}</{tag}>' for cell, style in zip(cells, styles, strict=True))


def _causes(findings: Findings | None) -> Iterable[str]:
    if findings is None or not findings.findings:
        return
    yield '<ol style="margin-top:.6em">\n'
    for finding in findings.findings[:MOST_FINDINGS]:
        cost = "" if finding.cost_ns is None else f" – {format_ns(finding.cost_ns)} ({format_percent(finding.share)})"
        action = f"<br>{escape(prose(finding.action))}" if finding.action else ""
        yield f"<li><strong>{escape(prose(finding.title))}</strong>{cost}{action}</li>\n"
    yield "</ol>\n"
