"""`NAME.9.executable-targets.mlir`: programs, tasks, starts and waits, as MLIR in generic form.

Stock IREE parses it with unregistered dialects allowed. Memory spaces are strings there: a dialect's own attribute is
no memory space to a parser that does not know the dialect. `--torq-debug-info=DIR` is the same as MLIR bytecode, a file
per dispatch, which `annotate` takes with the runtime's log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from .... import __version__
from ....core.errors import UsageError
from ....core.files import write_bytes
from ....program.sequence import SequencerJob, SequencerStep, SequencerTask, Unit
from .sequenced import Scheduled
from .tables import dispatch_name, job_location, start_action, step_cycles, step_location

_NEEDS = "needs iree-base-compiler 3.10; expected `pip install 'opscope[mlir]'`"
_CODE = "memref<64xi8>"
_XRAM, _DTCM = 'memref<?xi8, "xram">', 'memref<32768xi8, "dtcm">'
_ENGINES = {Unit.COMPUTE: "slice", Unit.APART: "css"}
_DMAS = {Unit.READ: "dma_in", Unit.WRITE: "dma_out"}


@dataclass(frozen=True, slots=True)
class _Code:
    """A program of a slice or of the CSS; commands that do the same share one."""

    number: int
    executor: str  # slice, css
    name: str
    command: int  # one that runs it


@dataclass(slots=True)
class ExecutableTargets:
    """The dump of one compiled program."""

    scheduled: Scheduled
    codes: dict[tuple[int, int, int, int], _Code] = field(default_factory=dict)  # op, kind, cycles, bytes

    def render(self) -> str:
        """The whole text: code of the engines first, as jobs refer to it, then head, body and end of the module."""
        for _, step in self.scheduled.sequence.starts():
            if step.unit in _ENGINES:
                self._code(step)
        name = dispatch_name(self.scheduled.program)
        head = [
            '"builtin.module"() ({',
            f'"hal.executable"() <{{sym_name = "{name}", sym_visibility = "private"}}> ({{',
            '"hal.executable.variant"() <{sym_name = "torq", sym_visibility = "public", '
            'target = #hal.executable.target<"torq", "torq-fb">}> ({',
            '"builtin.module"() ({',
            f'"func.func"() <{{function_type = () -> (), sym_name = "{name}"}}> ({{',
        ]
        tail = [
            '"func.return"() : () -> ()',
            "}) : () -> ()",
            "}) : () -> ()",
            '"hal.executable.variant_end"() : () -> ()',
            "}) : () -> ()",
            '"hal.executable_end"() : () -> ()',
            "}) : () -> ()",
            f'}}) {{opscope.producer = "opscope {__version__}"}} : () -> ()',
        ]
        lines = [f"{'  ' * level}{line}" for level, line in enumerate(head)]
        lines += [f"          {line}" for line in self._body()]
        lines += [f"{'  ' * level}{line}" for level, line in zip((5, 4, 3, 3, 2, 2, 1, 0), tail, strict=True)]
        return "\n".join(lines) + "\n"

    # -- the function

    def _body(self) -> Iterator[str]:
        """Memories, code, and the jobs with their calls, in the order of the schedule."""
        scheduled = self.scheduled
        program, jobs = scheduled.program, scheduled.sequence.jobs
        yield f'%xram = "torq_hl.map_binding"() {{binding = 0 : index}} : () -> {_XRAM}'
        yield f'%lram = "memref.alloc"() <{{operandSegmentSizes = array<i32: 0, 0>}}> {_action(0)} : () -> {self.lram}'
        yield f'%dtcm = "torq_hl.get_block"() : () -> {_DTCM}'
        for code in self.codes.values():
            yield from self._code_lines(code)
        times = scheduled.timeline
        bounds = scheduled.sequence.bounds(times.lane_ready, times.start, times.issue_end, times.done)
        clock = 0.0
        for job, (begin, end) in zip(jobs, bounds, strict=True):
            lines, clock = self._job_lines(job, clock, end if job is jobs[-1] else None)
            yield from lines
            yield from self._call_lines(job, round(begin), round(end))
        released = _action(start_action(len(jobs)))
        yield f'"memref.dealloc"(%lram) {released} : ({self.lram}) -> ()'
        peak, total = program.metrics.local_bytes[0], round(times.total_cycles)
        yield (
            f'"torq_hw.dispatch_profiling"() {{lram_peak_bytes = {peak} : i64, '
            f"lram_capacity_bytes = {program.metrics.local_capacity} : i64, "
            f"constant_bytes = {program.metrics.constants_bytes} : i64, total_cycle = {total} : i64}} : () -> ()"
        )

    @property
    def lram(self) -> str:
        return f'memref<{self.scheduled.program.metrics.local_bytes[0]}xi8, "lram">'

    def _call_lines(self, job: SequencerJob, begin: int, end: int) -> Iterator[str]:
        """Start of a job and the wait for it, with the cycles at which they are expected."""
        names, types = self._arguments(job)
        place = f'"torq-start-time-cycles" = {begin} : i64, "torq-end-time-cycles" = {end} : i64'
        location = job_location(self.scheduled.program, job)
        operands = ", ".join([f"%ni{job.number}", f"%nc{job.number}", *(f"%{name}" for name in names)])
        sizes = f"operandSegmentSizes = array<i32: 1, 1, {len(names)}>"
        action = start_action(job)
        yield (
            f'"torq_hl.start_program"({operands}) {{{sizes}, "torq-action-id" = {action} : i32, {place}}} : '
            f"({', '.join(['!torq_hl.invocation<nss>', _CODE, *types])}) -> () {location}"
        )
        yield (
            f'"torq_hl.wait_program"(%ni{job.number}) {{"torq-action-id" = {action + 1} : i32, {place}}} : '
            f"(!torq_hl.invocation<nss>) -> () {location}"
        )

    # -- programs of slices and of the CSS

    def _key(self, step: SequencerStep) -> tuple[int, int, int, int]:
        row = self.scheduled.program.commands[step.command]
        return int(row["op"]), int(row["kind"]), int(row["cycles"]), int(row["out_bytes"])

    def _code(self, step: SequencerStep) -> _Code:
        key = self._key(step)
        if key not in self.codes:
            kind, executor = self.scheduled.program.kinds[key[1]], _ENGINES[step.unit]
            plain = "".join(c if c.isalnum() or c == "_" else "_" for c in kind)
            name = f"{executor}_program_torq_hl.{plain}_{len(self.codes)}"
            self.codes[key] = _Code(len(self.codes), executor, name, step.command)
        return self.codes[key]

    def _code_lines(self, code: _Code) -> Iterator[str]:
        """Code that an engine runs for a command: its task, and what it should take."""
        program, executor, own = self.scheduled.program, code.executor, code.number
        row = program.commands[code.command]
        op = int(row["op"])
        location = program.ops[op].location if 0 <= op < len(program.ops) else "loc(unknown)"
        kind = program.kinds[row["kind"]]
        yield f'%p{own} = "torq_hl.program"() <{{name = "{code.name}"}}> ({{'
        yield f"^bb0(%a: {self.lram}):"
        yield f'  "torq_hw.{executor}_task"(%a) {{op_name = "{_escaped(kind)}"}} : ({self.lram}) -> () {location}'
        memory = self._footprint(op, executor)
        yield (
            f'  "torq_hw.{executor}_profiling"() {{{memory}out_bytes = {row["out_bytes"]} : i64, '
            f"macs = {row['macs']} : i64, max_cycle = {row['cycles']} : i64}} : () -> () {location}"
        )
        yield '  "torq_hl.return"() : () -> ()'
        yield f"}}) : () -> !torq_hl.program<{executor}> {location}"
        yield (
            f'%i{own}, %c{own} = "torq_hl.create_invocation"(%p{own}) {{name = "{code.name}"}} : '
            f"(!torq_hl.program<{executor}>) -> (!torq_hl.invocation<{executor}>, {_CODE}) {location}"
        )

    def _footprint(self, op: int, executor: str) -> str:
        """Bytes of the operands of the op that a program does a part of: together, and one by one."""
        operands = self.scheduled.operand_bytes[op] if 0 <= op < len(self.scheduled.operand_bytes) else ()
        if not operands:
            return ""
        listed = "+".join(map(str, operands))
        return f'{executor}_mem = {sum(operands)} : i64, {executor}_meminfo = "{listed}", '

    # -- NSS programs

    def _arguments(self, job: SequencerJob) -> tuple[list[str], list[str]]:
        """Names and types of what a job is given: invocations with their code, and the memories."""
        steps = [step for task in job.tasks for step in task.steps if not step.waits and step.unit in _ENGINES]
        used = {code.number: code for code in map(self._code, steps)}
        names, types = [], []
        for number, code in used.items():
            names += [f"i{number}", f"c{number}"]
            types += [f"!torq_hl.invocation<{code.executor}>", _CODE]
        return [*names, "xram", "lram", "dtcm"], [*types, _XRAM, self.lram, _DTCM]

    def _job_lines(self, job: SequencerJob, clock: float, end: float | None) -> tuple[list[str], float]:
        """The program of one job, task by task, and the cycle at which it ends."""
        names, types = self._arguments(job)
        location, number = job_location(self.scheduled.program, job), job.number
        listed = ", ".join(f"%b_{name}: {kind}" for name, kind in zip(names, types, strict=True))
        lines = [f'%np{number} = "torq_hl.program"() <{{name = "nss_program_{number}"}}> ({{', f"^bb0({listed}):"]
        for task in job.tasks:
            last = end is not None and task is job.tasks[-1]
            after = end if last and end is not None else self._task_end(task, clock)
            lines += self._task_lines(task, clock, after)
            clock = after
        lines += [
            '  "torq_hl.return"() : () -> ()',
            f"}}) : () -> !torq_hl.program<nss> {location}",
            f'%ni{number}, %nc{number} = "torq_hl.create_invocation"(%np{number}) {{name = "nss_program_{number}", '
            f'"torq-job-id" = {number} : i32}} : (!torq_hl.program<nss>) -> (!torq_hl.invocation<nss>, {_CODE}) '
            f"{location}",
        ]
        return lines, clock

    def _task_end(self, task: SequencerTask, clock: float) -> float:
        """A start is over when the sequencer goes on; a wait, when what needed it begins."""
        times = self.scheduled.timeline
        ends = (times.start[s.issued_by] if s.waits else times.issue_end[s.issued_by] for s in task.steps)
        return max(clock, *map(float, ends))

    def _task_lines(self, task: SequencerTask, start: float, end: float) -> Iterator[str]:
        yield '  "torq_hw.nss_task"() ({'
        for step in task.steps:
            yield from (f"    {line}" for line in self._step_lines(step))
        location = step_location(self.scheduled.program, task.steps[0])
        yield (
            f'  }}) {{"torq-task-id" = {task.number} : i64, "torq-start-time-cycles" = {round(start)} : i64, '
            f'"torq-end-time-cycles" = {round(end)} : i64}} : () -> () {location}'
        )

    def _step_lines(self, step: SequencerStep) -> Iterator[str]:
        """A step in the operation of its unit: DMA, engine, or a wait."""
        program, command = self.scheduled.program, step.command
        location = step_location(program, step)
        takes = f'"torq-async-duration-cycles" = {step_cycles(program, step)} : i64'
        size = program.commands["moved_bytes"][command]
        if step.unit in _DMAS:
            yield from self._dma_lines(_DMAS[step.unit], step, int(size), takes, location)
        elif step.unit in _ENGINES:
            yield self._engine_line(step, takes, location)
        elif step.waits:
            yield f'"torq_hw.cdma_wait"() : () -> () {location}'
        else:  # the destination comes first
            ends = ("%b_dtcm, %b_lram", f"{_DTCM}, {self.lram}")
            if step.unit is Unit.FETCH:
                ends = ("%b_lram, %b_dtcm", f"{self.lram}, {_DTCM}")
            yield f'"torq_hw.cdma_start"({ends[0]}) {{bytes = {size} : i64, {takes}}} : ({ends[1]}) -> () {location}'

    def _dma_lines(self, name: str, step: SequencerStep, size: int, takes: str, location: str) -> Iterator[str]:
        if step.waits:
            yield f'"torq_hw.{name}_wait"() : () -> () {location}'
            return
        ndl = f"#torq_hw.dma_ndl<{{dims = [[{size}, 1]]}}>"
        ends = ("%b_xram, %b_lram", f"{_XRAM}, {self.lram}")
        if step.unit is Unit.WRITE:
            ends = ("%b_lram, %b_xram", f"{self.lram}, {_XRAM}")
        address = self.scheduled.program.commands["local_address"][step.command]
        yield (
            f'"torq_hw.{name}_cfg"({ends[0]}) {{lram_address = {address} : i64, read_ndl = {ndl}, write_ndl = {ndl}}} '
            f": ({ends[1]}) -> () {location}"
        )
        yield f'"torq_hw.{name}_start"() {{{takes}}} : () -> () {location}'

    def _engine_line(self, step: SequencerStep, takes: str, location: str) -> str:
        executor = _ENGINES[step.unit]
        own = f"id = {step.number} : index" if step.unit is Unit.COMPUTE else ""
        if step.waits:
            return f'"torq_hw.{executor}_wait"() {{{own}}} : () -> () {location}'
        code = self._code(step)
        attributes = ", ".join(word for word in (own, takes) if word)
        return (
            f'"torq_hw.{executor}_start"(%b_i{code.number}, %b_c{code.number}, %b_lram) {{{attributes}}} : '
            f"(!torq_hl.invocation<{executor}>, {_CODE}, {self.lram}) -> () {location}"
        )


def _action(number: int) -> str:
    return f'{{"torq-action-id" = {number} : i32}}'


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() and c not in '"\\' else "?" for c in text)


def debug_file(folder: Path, scheduled: Scheduled) -> Path:
    """Named after the dispatch, as logs of the host name it."""
    return folder / f"{dispatch_name(scheduled.program)}.mlirb"


def write_debug_info(folder: Path, scheduled: Scheduled) -> Path:
    """Write the one dispatch that a program is; returns the file."""
    try:
        from iree.compiler import ir
    except ImportError as error:
        raise UsageError(f"--torq-debug-info: bytecode {_NEEDS}") from error
    context = ir.Context()
    context.allow_unregistered_dialects = True
    packed = BytesIO()
    ir.Module.parse(ExecutableTargets(scheduled).render(), context).operation.write_bytecode(packed)
    path = debug_file(folder, scheduled)
    write_bytes(path, packed.getvalue())
    return path
