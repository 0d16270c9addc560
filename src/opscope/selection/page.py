"""A bakeoff as one self-contained page: what is weighed in a picture, and every row in a table."""

from __future__ import annotations

from typing import TextIO

from .. import __version__
from ..machine.entry import WHY
from ..views.page.contract import BAKEOFF_SCHEMA, BakeoffData, BakeoffKind, BakeoffPageRow, Producer
from ..views.page.html import write_page
from .rows import Bakeoff, BakeoffRow
from .views import cpu_text, energy_text, error_text, fits_text, head_line, why, words_below


class BakeoffPage:
    """One file that opens from disk and loads nothing."""

    suffix = ".html"

    def render(self, found: Bakeoff, out: TextIO) -> None:
        data = BakeoffData(
            schema=BAKEOFF_SCHEMA,
            producer=Producer("opscope", __version__),
            model=found.model,
            head=head_line(found),
            kinds=tuple(BakeoffKind(kind, WHY[kind]) for kind in found.kinds),
            rows=tuple(map(_page_row, found.rows)),
            notes=tuple(words_below(found)),
        )
        write_page(out, title=f"{found.model}: bakeoff – opscope", generator=f"opscope {__version__}", data=data)


def _page_row(row: BakeoffRow) -> BakeoffPageRow:
    latency, energy = row.latency, row.energy
    return BakeoffPageRow(
        target=row.target,
        title=row.title,
        group=row.group,
        backend=row.backend,
        precision=row.precision,
        kind=row.provenance or "",
        why="" if row.provenance else why(row),
        latency_ns=row.latency_ns,
        low_ns=latency.low_ns if latency else None,
        high_ns=latency.high_ns if latency else None,
        peak_bytes=row.peak_bytes,
        fits=row.fits,
        fits_text=fits_text(row),
        energy_j=energy.value_j if energy else None,
        energy_text=energy_text(row),
        energy_whole=energy is not None and not energy.note,
        time_share=row.time_share,
        op_share=row.op_share,
        cpu_ops=cpu_text(row),
        compile_s=row.compile_s,
        sqnr_db=row.copy.sqnr_db if row.copy else None,
        error_text=error_text(row),
        is_on_front=row.is_on_front,
    )
