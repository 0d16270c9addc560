"""Dumps in generic MLIR, put together from the steps of their jobs."""

from __future__ import annotations

from collections.abc import Sequence

DMA_IN_CONFIGURE = (
    '"torq_hw.dma_in_cfg"(%m, %m) {read_ndl = #torq_hw.dma_ndl<{dims = [[64, 1]]}>}'
    " : (memref<64xi8>, memref<64xi8>) -> ()"
)
DMA_IN = (
    '"torq_hw.dma_in_start"() {"torq-async-duration-cycles" = 160 : i64} : () -> ()',
    '"torq_hw.dma_in_wait"() : () -> ()',
)
DMA_OUT = (
    '"torq_hw.dma_out_start"() {"torq-async-duration-cycles" = 80 : i64} : () -> ()',
    '"torq_hw.dma_out_wait"() : () -> ()',
)
CSS = (
    '"torq_hw.css_start"() {"torq-async-duration-cycles" = 8000 : i64} : () -> ()',
    '"torq_hw.css_wait"() : () -> ()',
)
CDMA_WAIT = '"torq_hw.cdma_wait"() : () -> ()'


def slice_start(number: int, cycles: int | None = 320) -> str:
    estimate = "" if cycles is None else f', "torq-async-duration-cycles" = {cycles} : i64'
    types = "(!torq_hl.invocation<slice>, memref<64xi8>) -> ()"
    return f'"torq_hw.slice_start"(%i, %m) {{id = {number} : index{estimate}}} : {types}'


def slice_wait(number: int) -> str:
    return f'"torq_hw.slice_wait"() {{id = {number} : index}} : () -> ()'


def job(number: int, tasks: Sequence[Sequence[str]], *, actions: tuple[int, int] | None = None, place: str = "") -> str:
    """A program, its invocation, its start and its wait; `place` is the location of the start."""
    first, second = actions or (2 * number, 2 * number + 1)
    body = "\n".join(
        '"torq_hw.nss_task"() ({\n' + "\n".join(steps) + f'\n}}) {{"torq-task-id" = {at} : i64}} : () -> ()'
        for at, steps in enumerate(tasks)
    )
    return f"""
%np{number} = "torq_hl.program"() <{{name = "nss_program_{number}"}}> ({{
^bb0(%i: !torq_hl.invocation<slice>, %m: memref<64xi8>):
{body}
"torq_hl.return"() : () -> ()
}}) : () -> !torq_hl.program<nss>
%ni{number}, %nc{number} = "torq_hl.create_invocation"(%np{number})
  {{name = "nss_program_{number}", "torq-job-id" = {number} : i32}}
  : (!torq_hl.program<nss>) -> (!torq_hl.invocation<nss>, memref<64xi8>)
"torq_hl.start_program"(%ni{number}, %nc{number}, %sinv, %code)
  {{operandSegmentSizes = array<i32: 1, 1, 2>, "torq-action-id" = {first} : i32}}
  : (!torq_hl.invocation<nss>, memref<64xi8>, !torq_hl.invocation<slice>, memref<64xi8>) -> () {place}
"torq_hl.wait_program"(%ni{number}) {{"torq-action-id" = {second} : i32}} : (!torq_hl.invocation<nss>) -> ()
"""


def function(jobs: Sequence[str], *, name: str = "main_dispatch_0", before: str = "") -> str:
    return f"""
"func.func"() <{{function_type = () -> (), sym_name = "{name}"}}> ({{
%prog = "torq_hl.program"() <{{name = "slice_program_torq_hl.add"}}> ({{
^bb0(%a: memref<64xi8>):
"torq_hw.slice_profiling"() {{max_cycle = 120 : i32}} : () -> ()
"torq_hl.return"() : () -> ()
}}) : () -> !torq_hl.program<slice>
%sinv, %code = "torq_hl.create_invocation"(%prog) {{name = "slice_program_torq_hl.add"}}
  : (!torq_hl.program<slice>) -> (!torq_hl.invocation<slice>, memref<64xi8>)
{before}
{"".join(jobs)}
"func.return"() : () -> ()
}}) : () -> ()
"""


def module(*functions: str) -> str:
    return "module {\n" + "\n".join(functions) + "\n}\n"
