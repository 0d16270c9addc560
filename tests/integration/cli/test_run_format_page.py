"""docs/formats/run.md names every key and every column of a Run, and none that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from opscope import api
from opscope.recording.schema import COLUMNS, MEANING_TABLES, TABLES
from opscope.zoo import Recipe, make

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "run.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    make(Recipe("kws-cnn"), folder / "kws.onnx")
    api.profile(folder / "kws.onnx", "aic100-std", options={"cores": 2}, run=folder / "kws.run")
    return folder / "kws.run"


def rows_of(heading: str) -> list[str]:
    """Lines of the table under a heading."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (text,) = (part for part in sections if part.startswith(f"{heading}\n"))
    return [line for line in text.splitlines() if line.startswith("| `")]


def first_cells(heading: str) -> list[str]:
    """Names in the first column."""
    return [name for row in rows_of(heading) for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


@pytest.mark.parametrize("table", [*TABLES, *MEANING_TABLES])
def test_every_column_is_on_the_page(run: Path, table: str) -> None:
    assert sorted(first_cells(f"{table}.parquet")) == sorted(pq.read_schema(run / f"{table}.parquet").names)


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_of_the_schema_is_on_the_page(table: str) -> None:
    assert sorted(first_cells(f"{table}.parquet")) == sorted(COLUMNS[table])


@pytest.mark.parametrize("file", ["run.json", "summary.json"])
def test_every_key_is_on_the_page(run: Path, file: str) -> None:
    assert sorted(first_cells(file)) == sorted(json.loads((run / file).read_bytes()))


def test_every_key_of_the_rows_of_a_summary_is_on_the_page(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_bytes())
    for key, value in summary.items():
        rows = value if isinstance(value, list) else [value]
        line = next(line for line in rows_of("summary.json") if f"`{key}`" in line.split(" | ")[0])
        for name in rows[0] if rows and isinstance(rows[0], dict) and key != "producer" else ():
            assert f"`{name}`" in line, (key, name)


def test_every_file_of_a_run_is_on_the_page(run: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert not [path.name for path in run.iterdir() if f"`{path.name}`" not in text]
