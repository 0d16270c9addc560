"""Files of measurements with anything in them: rows, or one line that says what is wrong."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.calibration.measurements import read_measurements
from opscope.core.errors import ImportFileError

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
COLUMNS = ("model", "latency_ms", "chip", "precision", "batch", "cores", "shapes", "energy_uj", "ram_bytes")
CELLS = st.one_of(
    st.text(max_size=12),
    st.floats(width=32).map(str),
    st.integers().map(str),
    st.sampled_from(["net", "net.onnx", ".", "..", "/", "x=1x2", "x=1x2;y=0", "=", "w8a8", "1e400", "٣", "\x00", '"']),
)


def check(folder: Path, content: bytes) -> None:
    (folder / "net.onnx").touch()
    path = folder / "rows.csv"
    path.write_bytes(content)
    try:
        rows = read_measurements([path])
    except ImportFileError as error:
        refusal, rows = str(error), []
    else:
        refusal = ""
    assert bool(rows) is not bool(refusal)
    assert "\n" not in refusal
    for row in rows:
        assert isinstance(row.model, Path)
        assert row.model.is_file()
        for value in (row.seconds, row.joules, row.ram_bytes):
            assert value is None or (isfinite(value) and value > 0)
        assert row.batch is None or row.batch > 0
        assert all(extent > 0 for extents in (row.shapes or {}).values() for extent in extents)


@SETTINGS
@given(st.binary(max_size=300))
def test_any_bytes_are_rows_or_one_line(tmp_path: Path, content: bytes) -> None:
    check(tmp_path, content)


@SETTINGS
@given(st.lists(st.lists(CELLS, min_size=7, max_size=7), min_size=1, max_size=4))
def test_any_cells_are_rows_or_one_line(tmp_path: Path, table: list[list[str]]) -> None:
    lines = [",".join(COLUMNS), *(",".join(("net", "1", *row)) for row in table)]
    check(tmp_path, "\n".join(lines).encode("utf-8", "surrogatepass"))


@SETTINGS
@given(CELLS, CELLS)
def test_any_name_and_time_is_a_row_or_one_line(tmp_path: Path, name: str, time: str) -> None:
    check(tmp_path, f"model,latency_ms\n{name},{time}\n".encode("utf-8", "surrogatepass"))
