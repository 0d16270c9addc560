"""Programs with names in them, and the stats buffers they leave: what tests of decoding start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opscope.analysis.totals.work import ProgramIndex
from opscope.core.meaning import Direction
from opscope.decode import Buffer, LaneIndex, check_buffer, decode_buffer, decode_trace, origin_tick
from opscope.device import Inference, collect
from opscope.program.capture import Capture, encode_capture
from opscope.program.program import Detail, MemoryMetrics, Operand, OpInfo, Program, StatsOptions
from opscope.program.program_file import encode_program, program_id
from opscope.recording.trace import Trace
from opscope.simulation import simulate
from support.device.build import DDR, DMA, HMX, HVX, READ, VTCM, WRITE, Step, program_of

START_TICK = 9_803_252_406_782
EVENTS = StatsOptions(
    level=100,
    ddr=True,
    recipe="KernelUtil",
    events=(0x2, 0x200),
    event_names=("THREAD_CYCLES", "HMX_ACTIVE"),
    event_counts=("cycles", "busy_cycles:HMX"),
    batch_size=8,
)
LAYERS = (OpInfo("/layers.0/MatMul", "MatMul", "matmul", ""), OpInfo("/layers.1/Add", "Add", "add", ""))
WEIGHTS = Operand(Direction.IN, "Src", "w", DDR, "f16", (2, 2))
RESULT = Operand(Direction.OUT, "Dest", "y", VTCM, "f16", (2,), 1024)
DETAILS = (
    Detail("/layers.0/MatMul/__0", "DDR", "", "", (WEIGHTS,), ""),
    Detail(
        "/layers.0/MatMul",
        "VTCM",
        "float16, i8",
        "Dest [2]",
        (RESULT,),
        "{kernel: 1}",
    ),
    Detail('/layers.1/Add "quoted"', "VTCM", "float16", "", (), ""),
)


@dataclass(frozen=True)
class Profiled:
    """A program, its file and one buffer per device."""

    program: Program
    raw_program: bytes
    captures: tuple[Capture, ...]

    @property
    def identity(self) -> int:
        return program_id(self.raw_program)

    def raw(self, device: int = 0) -> bytes:
        return encode_capture(self.captures[device])

    def buffer(self, device: int = 0) -> Buffer:
        found = decode_buffer(self.raw(device), source="a.bin")
        check_buffer(found, self.program, program_id=self.identity)
        return found

    def trace(self, device: int = 0, **options: object) -> Trace:
        buffers = [self.buffer(number) for number in range(self.program.devices)]
        index = LaneIndex.of(self.program)
        chosen = {"origin": origin_tick(buffers), "provenance": "simulated", **options}
        return decode_trace(self.program, buffers[device], index, **chosen)  # type: ignore[arg-type]

    @property
    def index(self) -> ProgramIndex:
        return ProgramIndex.of(self.program)


def furnished(program: Program) -> Program:
    """The same program with ops, details and sizes: of the kinds of command, copies lie in outer memory."""
    commands = program.commands.copy()
    number = commands["ordinal"].astype(int) + commands["core"]
    commands["detail"] = [0 if row["route"] >= 0 else 1 + n % 2 for row, n in zip(commands, number, strict=True)]
    commands["op"] = [n % 3 - 1 for n in number.tolist()]
    commands["out_bytes"] = [(n * 700) % 3000 for n in number.tolist()]
    commands["local_bytes"] = commands["out_bytes"] // 2
    metrics = MemoryMetrics(0, (), 1 << 20, (), 0, 0, 0, {})
    return replace(program, commands=commands, ops=LAYERS, details=DETAILS, metrics=metrics, name="network")


def profiled(program: Program, *, seed: int = 1, inference: int = 3, capacity: int | None = None) -> Profiled:
    raw = encode_program(program)
    timeline = simulate(program, seed=seed, inference=inference)
    ran = Inference(program_id(raw), 0, inference, START_TICK, input_wait_ticks=40, output_wait_ticks=2)
    captures = [
        collect(program, timeline, ran, device=device, capacity_records=capacity) for device in range(program.devices)
    ]
    return Profiled(program, raw, tuple(captures))


STEPS = (
    Step(HVX, 1, kind=2),
    Step(DMA, 200, route=READ, moved_bytes=40_000, kind=1),
    Step(DMA, 200, route=READ, moved_bytes=40_000, kind=1),
    Step(HMX, 9000, needs=(1,), macs=500),
    Step(HVX, 5000, needs=(3,)),
    Step(HMX, 7000, needs=(2,), macs=500),
    Step(HVX, 400, needs=(5,)),
    Step(HVX, 6000, needs=(4,), core=1),
    Step(DMA, 200, needs=(6,), route=WRITE, moved_bytes=9000, kind=1),
    Step(HVX, 1, needs=(8,), kind=3),
)


def small(stats: StatsOptions | None = None, steps: Sequence[Step] = STEPS, **options: object) -> Profiled:
    """Two cores: copies, products that wait for them, additions that wait for products and for the other core."""
    program = program_of(
        steps, stats=stats or StatsOptions(level=70), simulation={"thread_spread": 0.2}, stats_hz=19.2e6, clock_hz=1.2e9
    )
    return profiled(furnished(program), **options)  # type: ignore[arg-type]
