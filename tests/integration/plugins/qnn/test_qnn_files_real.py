"""Files that the vendor's library leaves on this machine, read back: a check on the files that other tests make."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from opscope.importers.formats import read_profile
from opscope.importers.reading import Unread
from opscope.plugins.qnn.compilation import Compilation, read_graphs
from opscope.plugins.qnn.importers.events import EXECUTE, FINALIZE, Message, node_times, plain_name
from opscope.plugins.qnn.importers.log import Log, read_log
from opscope.plugins.qnn.importers.op_trace import OpTrace, read_op_trace
from opscope.plugins.qnn.importers.profile_csv import read_csv
from opscope.plugins.qnn.metrics import CYCLES
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.profile import assemble
from opscope.recording.recording import Placed
from opscope.recording.trace import NONE
from support.models.small_models import convnet, cut_in_two, quantised

pytestmark = pytest.mark.skipif(
    find_spec("onnxruntime_qnn") is None, reason="onnxruntime-qnn is not installed: pip install 'opscope[htp]'"
)

SCRIPT = Path(__file__).parents[3] / "support" / "plugins" / "qnn" / "qnn_real.py"
NODES = (("conv0", "Conv"), ("acosh_mid", "Acosh"), ("conv1", "Conv"), ("relu1", "Relu"))


def left_by(model: Path, folder: Path, soc: str, level: str, *, runs: int) -> Path:
    """The folder in which the library worked."""
    folder.mkdir()
    words = [sys.executable, str(SCRIPT), str(model), soc, level, str(runs)]
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two graphs around a node on the CPU, for a part that the vendor's model knows, run twice in emulation."""
    folder = tmp_path_factory.mktemp("two")
    return left_by(cut_in_two(folder / "two.onnx"), folder / "left", "52", "optrace", runs=2)


@pytest.fixture(scope="module")
def detailed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quantised network for a part that it does not know, run once in emulation."""
    folder = tmp_path_factory.mktemp("detailed")
    model = quantised(convnet(folder / "float.onnx"), folder / "qdq.onnx")
    return left_by(model, folder / "left", "57", "detailed", runs=1)


def log_of(folder: Path) -> Log:
    return read_log((folder / "prof_qnn.log").read_bytes(), source="log")


def op_trace_of(folder: Path) -> OpTrace:
    return read_op_trace((folder / "qnn_op_trace.json").read_bytes(), source="op trace")


def flat(message: Message) -> list[tuple[str, int | None, str]]:
    return [(event.name, event.value, event.unit) for root in message.events for event in root.walk()]


@pytest.mark.parametrize("session", ["two", "detailed"])
def test_the_log_and_the_csv_of_a_session_say_the_same(session: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(session)
    log = log_of(folder).messages
    rows = read_csv((folder / "prof.csv").read_bytes(), source="csv", unread=Unread("rows"))
    assert [m.method for m in log] == [m.method for m in rows]
    assert [flat(m) for m in log] == [flat(m) for m in rows]


def test_a_graphs_preparation_that_is_written_again_counts_once(two: Path) -> None:
    log, (first, second) = log_of(two), op_trace_of(two).graphs
    assert (two / "prof.csv").read_bytes().count(b"QNN (finalize) time") == 3
    assert [m.graph for m in log.messages if m.method == FINALIZE] == [first, second]
    assert list(log.timelines) == [first, second]
    assert [m.graph for m in log.messages if m.method == EXECUTE] == [first, second, first, second]


def test_estimate_timeline_and_schematic_agree_to_the_byte(two: Path) -> None:
    for graph in read_graphs(two, log_of(two), op_trace_of(two)):
        assert graph.prepared is not None
        assert graph.timeline is not None
        line, moved = graph.timeline, graph.schematic.moved
        assert line.end == graph.prepared.value(CYCLES)
        assert line.work["dram_read"].sum() == sum(row.dram_read for row in moved)
        assert line.work["dram_read"].sum() == graph.prepared.value("Input Fill")
        assert line.work["dram_write"].sum() == sum(row.dram_write for row in moved)
        assert line.usage[:, 1].max() == graph.schematic.occupancy().max(initial=0)
        assert not line.work["dram_read"][line.work["bookkeeping"]].any()


def test_every_node_of_the_model_has_a_place(two: Path) -> None:
    op_trace = op_trace_of(two)
    compilation = Compilation(tuple(read_graphs(two, log_of(two), op_trace)), op_trace, NODES, (), {})
    result = assemble(Path("two.onnx"), HtpOptions.of({"soc": "52"}), compilation)
    names = [node.name for node in result.ops]
    assert len(set(names)) == len(names)
    assert set(names) >= {name for name, _ in NODES}
    (node,) = result.placed(Placed.CPU)
    assert node.reason.startswith("Operators of type `Acosh` are not supported by QNN EP. Acosh node")
    assert sum(node.path_share or 0 for node in result.ops) == pytest.approx(1, abs=1e-3)
    assert sum(part.share for part in result.path_shares) == pytest.approx(1)


def test_the_eighth_column_names_the_onnx_nodes(detailed: Path) -> None:
    rows = read_csv((detailed / "prof.csv").read_bytes(), source="csv", unread=Unread("rows"))
    run = next(m for m in rows if m.method == EXECUTE)
    node = next(node for node in node_times(run) if node.name == "conv0")
    assert node.unit == "CYCLES"
    assert [plain_name(name) for name in node.sources][-2:] == ["conv0", "r0_QuantizeLinear"]


@pytest.mark.parametrize("name", ["prof.csv", "prof_qnn.log"])
def test_times_of_emulation_are_left_out_and_estimates_are_not(name: str, two: Path, detailed: Path) -> None:
    found = read_profile(detailed / name)
    assert (found.provenance, found.metrics) == ("compiler-fact", ())
    assert all(op.cycles is None for op in found.ops)
    assert read_profile(two / name).provenance == "vendor-model"


def test_the_runtimes_own_profile_has_a_node_per_graph(two: Path) -> None:
    (file,) = two.glob("ort*.json")
    imported = read_profile(file)
    assert imported.inferences == 2
    assert [op.engines[0] for op in imported.ops].count("QNNExecutionProvider") == 2
    assert (imported.trace.spans["inference"] != NONE).any()
