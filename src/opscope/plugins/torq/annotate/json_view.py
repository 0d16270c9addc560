"""Annotated as JSON, schema `opscope.annotated/1`: rows, metrics, memories, notes. What is unknown is null."""

from __future__ import annotations

from dataclasses import asdict
from typing import BinaryIO

import msgspec

from ....core.json_files import PRODUCER
from .annotated import Annotated, Job, StepRows
from .columns import Headers, Table

SCHEMA = "opscope.annotated/1"


class AnnotatedJson:
    """Rows are objects, one per line, so that a long file can be read line by line."""

    suffix = ".json"

    def __init__(self, *, headers: Headers = Headers.SNAKE) -> None:
        self.headers = headers

    def render(self, annotated: Annotated, out: BinaryIO) -> None:
        table = Table(annotated)
        names = [column.called(self.headers) for column in table.columns]
        out.write(msgspec.json.encode(_head(annotated, names)).removesuffix(b"}") + b',\n"rows": [')
        between = b"\n"
        for part in table.parts():
            for values in zip(*(column.to_pylist() for column in part), strict=True):
                out.write(between + msgspec.json.encode(dict(zip(names, values, strict=True))))
                between = b",\n"
        out.write(b"\n]}\n")


def _head(annotated: Annotated, names: list[str]) -> dict[str, object]:
    """Everything but the rows."""
    head: dict[str, object] = {
        "schema": SCHEMA,
        "producer": PRODUCER,
        "provenance": annotated.provenance,
        "listing": annotated.listing,
        "runtime": annotated.runtime,
        "estimate_clock_hz": annotated.clock_hz,
        "columns": names,
        "metrics": [asdict(share) for share in annotated.shares],
        "memories": {name: [asdict(use) for use in uses] for name, uses in annotated.memories.items()},
        "notes": list(annotated.notes),
    }
    if isinstance(annotated.rows, StepRows):
        head["jobs"] = [_job(job) for job in annotated.rows.jobs]
    return head


def _job(job: Job) -> dict[str, object]:
    """Tasks and steps with what the table has no column for: cycles, memories, locations."""
    steps = [
        {
            "task": task.number,
            "operation": step.operation,
            "unit": step.unit,
            "number": step.number,
            "phase": step.phase.value,
            "invocation": step.invocation,
            "estimated_cycles": step.cycles,
            "source": step.source,
            "destination": step.destination,
            "location": step.location,
        }
        for task in job.tasks
        for step in task.steps
    ]
    return {"name": job.name, "id": job.id, "location": job.location, "steps": steps}
