from __future__ import annotations

import builtins
import io
from pathlib import Path
from types import ModuleType

import pytest

from opscope.core.errors import ImportFileError, UsageError
from opscope.plugins.torq.annotate.annotated import Listing, MemoryUse, Phase, Role, Step
from opscope.plugins.torq.importers import dump
from opscope.plugins.torq.importers.dump import read_listing
from support.plugins.torq_dumps import (
    CDMA_WAIT,
    CSS,
    DMA_IN,
    DMA_IN_CONFIGURE,
    DMA_OUT,
    function,
    job,
    module,
    slice_start,
    slice_wait,
)

ir = pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")
LRAM, DTCM = ("memref<64xi8, #torq_hl.enc<mem_space = lram>>", 'memref<64xi8, {mem_space = "dtcm"}>')


def listing(folder: Path, text: str) -> Listing:
    (folder / "fc.9.executable-targets.mlir").write_text(text)
    return read_listing(folder / "fc.9.executable-targets.mlir")


def steps(found: Listing) -> list[Step]:
    return [step for dispatch in found.dispatches for one in dispatch.jobs for step in one.steps]


def test_a_job_of_three_tasks_is_read_whole(tmp_path: Path) -> None:
    tasks = [[DMA_IN_CONFIGURE, DMA_IN[0]], [DMA_IN[1], slice_start(0, None)], [slice_wait(0)]]
    (dispatch,) = listing(tmp_path, module(function([job(0, tasks)]))).dispatches
    assert dispatch.name == "main_dispatch_0"
    assert [(action.id, action.operation, action.role, action.job) for action in dispatch.actions] == [
        (0, "torq_hl.start_program", Role.START, 0),
        (1, "torq_hl.wait_program", Role.WAIT, 0),
    ]
    (only,) = dispatch.jobs
    assert (only.name, only.id, only.invocations) == ("nss_program_0", 0, ("add",))
    assert [task.number for task in only.tasks] == [0, 1, 2]
    assert [
        (step.operation, step.unit, step.phase, step.number, step.invocation, step.cycles) for step in only.steps
    ] == [
        ("torq_hw.dma_in_cfg", "dma_in", Phase.CONFIGURE, None, None, None),
        ("torq_hw.dma_in_start", "dma_in", Phase.START, None, None, 160),
        ("torq_hw.dma_in_wait", "dma_in", Phase.WAIT, None, None, None),
        ("torq_hw.slice_start", "slice", Phase.START, 0, "add", 120),
        ("torq_hw.slice_wait", "slice", Phase.WAIT, 0, "add", None),
    ]


def test_steps_of_a_task_are_told_in_a_fixed_order(tmp_path: Path) -> None:
    text = module(
        function([job(0, [[CDMA_WAIT, CSS[0], slice_start(1), DMA_OUT[0], DMA_IN[0], DMA_IN[1], slice_wait(1)]])])
    )
    assert [step.operation.removeprefix("torq_hw.") for step in steps(listing(tmp_path, text))] == [
        "dma_in_start",
        "dma_in_wait",
        "slice_start",
        "slice_wait",
        "dma_out_start",
        "css_start",
        "cdma_wait",
    ]


def test_operands_of_cdma_are_destination_first(tmp_path: Path) -> None:
    """The mistake: the vendor's own reader takes operand 0 for the source."""
    before = f'%d = "memref.alloc"() <{{operandSegmentSizes = array<i32: 0, 0>}}> : () -> {DTCM}\n'
    before += f'%s = "memref.alloc"() <{{operandSegmentSizes = array<i32: 0, 0>}}> : () -> {LRAM}\n'
    start = f'"torq_hw.cdma_start"(%d, %s) : ({DTCM}, {LRAM}) -> ()'
    (found,) = steps(listing(tmp_path, module(function([job(0, [[start]])], before=before))))
    assert (found.source, found.destination) == ("LRAM", "DTCM")


def test_lram_is_what_is_live_at_once_and_not_the_sum(tmp_path: Path) -> None:
    """The mistake: the vendor's figure adds up every allocation."""
    alloc = f'"memref.alloc"() <{{operandSegmentSizes = array<i32: 0, 0>}}> : () -> {LRAM}'
    before = f'%a = {alloc}\n%b = {alloc}\n"memref.dealloc"(%a) : ({LRAM}) -> ()\n%c = {alloc}\n'
    found = listing(tmp_path, module(function([], before=before)))
    assert found.dispatches[0].memories == (MemoryUse("LRAM", peak_bytes=128, allocated_bytes=192),)


def test_any_number_of_slices_is_known(tmp_path: Path) -> None:
    found = listing(tmp_path, module(function([job(0, [[slice_start(5)], [slice_wait(5)]])])))
    assert found.slices == 6


def test_a_step_that_is_not_known_is_kept_and_noted(tmp_path: Path) -> None:
    found = listing(tmp_path, module(function([job(0, [['"torq_hw.odd"() : () -> ()']])])))
    assert [step.unit for step in steps(found)] == ["other"]
    assert any("step torq_hw.odd is not known" in note for note in found.notes)


def test_locations_are_the_models_and_never_the_dumps(tmp_path: Path) -> None:
    place = 'loc(fused["m.mlir":7:10, "m.mlir":9:10])'
    found = listing(tmp_path, module(function([job(0, [[DMA_IN[0]]], place=place), job(1, [[DMA_IN[1]]])])))
    assert [one.location for one in found.dispatches[0].jobs] == ['fused["m.mlir":7:10, "m.mlir":9:10]', None]


def test_a_program_that_runs_twice_is_two_jobs(tmp_path: Path) -> None:
    again = """"torq_hl.start_program"(%ni0, %nc0, %sinv, %code) {"torq-action-id" = 7 : i32}
      : (!torq_hl.invocation<nss>, memref<64xi8>, !torq_hl.invocation<slice>, memref<64xi8>) -> ()
    "torq_hl.wait_program"(%ni0) {"torq-action-id" = 8 : i32} : (!torq_hl.invocation<nss>) -> ()
    """
    (dispatch,) = listing(tmp_path, module(function([job(0, [[DMA_IN[0]]]), again]))).dispatches
    assert len(dispatch.jobs) == 2
    assert [(action.id, action.job) for action in dispatch.actions] == [(0, 0), (1, 0), (7, 1), (8, 1)]


def test_blocks_behind_the_first_get_their_arguments_from_next(tmp_path: Path) -> None:
    text = module(function([job(0, [[DMA_IN[0]]])])).replace(
        '"torq_hl.return"() : () -> ()\n}) : () -> !torq_hl.program<nss>',
        '"torq_hl.next"(%i, %m)[^bb1] : (!torq_hl.invocation<slice>, memref<64xi8>) -> ()\n'
        "^bb1(%j: !torq_hl.invocation<slice>):\n"
        '"torq_hw.nss_task"() ({\n"torq_hw.slice_start"(%j, %m) {id = 1 : index} : '
        "(!torq_hl.invocation<slice>, memref<64xi8>) -> ()\n"
        '}) : () -> ()\n"torq_hl.return"() : () -> ()\n}) : () -> !torq_hl.program<nss>',
    )
    assert [(step.unit, step.invocation) for step in steps(listing(tmp_path, text))] == [
        ("dma_in", None),
        ("slice", "add"),
    ]


def test_functions_are_found_however_deep_they_are_nested(tmp_path: Path) -> None:
    inner = module(function([job(0, [[DMA_IN[0]]])]), function([job(0, [[DMA_OUT[0]]])], name="main_dispatch_1"))
    found = listing(tmp_path, f'"x.executable"() ({{\n{inner}\n}}) : () -> ()\n')
    assert [dispatch.name for dispatch in found.dispatches] == ["main_dispatch_0", "main_dispatch_1"]


def test_a_folder_of_bytecode_is_read_as_one_listing(tmp_path: Path) -> None:
    for name in ("main_dispatch_0", "main_dispatch_1"):
        context = ir.Context()
        context.allow_unregistered_dialects = True
        parsed = ir.Module.parse(module(function([job(0, [[DMA_IN[0]]])], name=name)), context)
        buffer = io.BytesIO()
        parsed.operation.write_bytecode(buffer)
        (tmp_path / f"{name}.mlirb").write_bytes(buffer.getvalue())
    assert [dispatch.name for dispatch in read_listing(tmp_path).dispatches] == ["main_dispatch_0", "main_dispatch_1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "module {\n  torq_hl.map_binding %a\n}",
            r"line 2, column 3: .*not found for custom op.*--mlir-print-op-generic",
        ),
        ("module {", r"line 1, column \d+: .*; expected MLIR"),
        (
            "module { func.func @f() { return } }",
            "no function with actions of the device; expected an executable-targets dump",
        ),
        ("(" * 300, "line 1: nested more than 200 deep"),
        ("\0\0\0", "byte 0x0: binary data"),
    ],
)
def test_what_cannot_be_read_is_named_by_line(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "find_tool", lambda given: given)  # the vendor's tool would speak of it, where it is
    with pytest.raises(ImportFileError, match=words):
        listing(tmp_path, text)


def test_a_folder_without_a_dump_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no dump in this folder; expected \*\.mlirb or"):
        read_listing(tmp_path)


def test_without_the_parser_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> ModuleType:
        if name.startswith("iree"):
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        UsageError, match=r"reading MLIR needs iree-base-compiler 3\.10; expected `pip install 'opscope\[mlir\]'`"
    ):
        listing(tmp_path, "module {}")


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\xff" * 40])
def test_damaged_bytecode_ends_in_an_error_and_not_in_the_end_of_the_process(damage: bytes, tmp_path: Path) -> None:
    context = ir.Context()
    context.allow_unregistered_dialects = True
    buffer = io.BytesIO()
    ir.Module.parse(module(function([job(0, [[DMA_IN[0]]])])), context).operation.write_bytecode(buffer)
    raw = buffer.getvalue()
    (tmp_path / "a.mlirb").write_bytes(raw[: len(raw) // 2] + damage)
    with pytest.raises(ImportFileError, match=r"a\.mlirb: .*; expected"):
        read_listing(tmp_path / "a.mlirb")


def test_of_bytecode_that_is_cut_short_the_error_is_told_and_not_its_notes(tmp_path: Path) -> None:
    context = ir.Context()
    context.allow_unregistered_dialects = True
    buffer = io.BytesIO()
    ir.Module.parse(module(function([job(0, [[DMA_IN[0]]])])), context).operation.write_bytecode(buffer)
    (tmp_path / "a.mlirb").write_bytes(buffer.getvalue()[:200])
    with pytest.raises(ImportFileError, match=r"a\.mlirb: attempting to parse .* when only .* remain; expected"):
        read_listing(tmp_path / "a.mlirb")


def test_dispatches_of_a_folder_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        text = module(function([job(0, [[DMA_IN[0], DMA_IN[1]]])], name=f"main_dispatch_{number}"))
        (tmp_path / f"main_dispatch_{number}.executable-targets.mlir").write_text(text)
    found = read_listing(tmp_path)
    assert [dispatch.name for dispatch in found.dispatches] == [f"main_dispatch_{number}" for number in (1, 2, 10)]


def test_brackets_in_names_nest_nothing(tmp_path: Path) -> None:
    text = module(function([job(0, [[DMA_IN[0], DMA_IN[1]]])]))
    before = "".join(f'"torq_hl.other"() {{name = "a<b(["}} : () -> () loc("x({n}")\n' for n in range(150))
    path = tmp_path / "x.mlir"
    path.write_text(text.replace('"torq_hl.start_program"', before + '"torq_hl.start_program"', 1))
    assert len(read_listing(path).dispatches[0].jobs) == 1


@pytest.mark.parametrize("number", [2**63 - 1, -1, 1024])
def test_a_slice_that_cannot_be_is_noted_and_takes_no_memory(number: int, tmp_path: Path) -> None:
    found = listing(tmp_path, module(function([job(0, [[slice_start(number), slice_wait(0)]])])))
    assert found.slices <= 1
    assert any(f"torq_hw.slice_start has id {number}, expected 0 to 1023: left out" in note for note in found.notes)


@pytest.mark.parametrize("cycles", [2**63 - 1, -5])
def test_cycles_that_cannot_be_are_unknown(cycles: int, tmp_path: Path) -> None:
    found = listing(tmp_path, module(function([job(0, [[slice_start(0, cycles), slice_wait(0)]])])))
    assert steps(found)[0].cycles == 120  # of its program
    assert len(found.notes) == 1


@pytest.mark.parametrize(("second", "cycles"), [("120", 240), ("-5", None)])
def test_cycles_of_a_slice_program_are_unknown_where_those_of_a_task_are(
    second: str, cycles: int | None, tmp_path: Path
) -> None:
    task = '"torq_hw.slice_profiling"() {max_cycle = 120 : i32} : () -> ()\n'
    text = module(function([job(0, [[slice_start(1, None)]])]))
    text = text.replace(task, task + task.replace("120", second))
    (start,) = steps(listing(tmp_path, text))
    assert start.cycles == cycles
