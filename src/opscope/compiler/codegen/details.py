"""Details: what commands say of themselves, in words, made of the program that is taken and not of those tried."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ...core.meaning import Direction
from ...graph.graph import ABSENT, Op, Tensor
from ...graph.kinds import KINDS, Touches
from ...program.program import NO_OP, Detail, Operand
from ..plan import Schedule

_TYPE_NAMES = {"f16": "float16", "f32": "float", "u8": "ui8", "i32": "index32", "i64": "index64"}


class DetailWords:
    """The details of a schedule's commands."""

    def __init__(self, plan: Schedule, local_name: str, *, constants: Collection[int], made: Collection[int]) -> None:
        """`constants` stay in local memory, which is called `local_name`; ops have `made` the other tensors."""
        self.plan, self.tensors, self.local_name = plan, plan.graph.tensors, local_name
        self._at_hand = constants, made
        self._memory_number = {memory.name: number for number, memory in enumerate(plan.machine.target.memories)}
        self._whole: dict[int, Detail] = {}  # op → its detail before it is cut into tiles

    def move(self, index: int, step: int, memory: str, tensor: int, direction: Direction) -> Detail:
        """The detail of a command that moves a tensor, from or to a memory."""
        name = self.plan.placed[index].op.name if index != NO_OP else "output"
        role = "Dest" if direction is Direction.OUT else "Src"
        operands = () if tensor == ABSENT else (self._operand(direction, role, self.tensors[tensor], memory),)
        return Detail(f"{name}/__{step}", memory, "", "", operands, "")

    def compute(self, index: int, step: int, steps: int, here: Mapping[int, float]) -> Detail:
        """The detail of a command that computes one tile; tiles differ in their names only.

        `here`: bytes of inputs by position, and of the result (ABSENT), that a core has at once; of others all of it.
        """
        op = self.plan.placed[index].op
        if index not in self._whole:
            self._whole[index] = self._whole_op(op, here)
        return replace(self._whole[index], name=f"{op.name}/__{step}") if steps > 1 else self._whole[index]

    def _whole_op(self, op: Op, here: Mapping[int, float]) -> Detail:
        """The detail of an op as a whole: its operands with their types, shapes and memories.

        All of them are local: engines compute there, and what lies in outer memory was copied by a command of its own.
        """
        local, inputs = self.local_name, enumerate(op.inputs)
        named = [
            (Direction.OUT, "Dest", self.tensors[op.outputs[0]], ABSENT),
            *((Direction.IN, f"Src{i}", self._as_read(op, i, t), i) for i, t in inputs if t != ABSENT),
        ]
        labels = [tensor.dtype.label for _, _, tensor, _ in named]
        return Detail(
            op.name,
            local,
            ", ".join(dict.fromkeys(_TYPE_NAMES.get(label, label) for label in labels)),
            ", ".join(f"{role} [{_extents(tensor.shape)}]" for _, role, tensor, _ in named),
            tuple(self._operand(way, role, t, local, round(here.get(i) or t.bytes or 0)) for way, role, t, i in named),
            "{" + ", ".join(f"{key}: {value}" for key, value in op.attributes.items()) + "}",
        )

    def _as_read(self, op: Op, position: int, tensor: int) -> Tensor:
        """An input as it is in local memory: of a table beyond it, no more rows than the op picks were copied."""
        whole, made = self.tensors[tensor], self.tensors[op.outputs[0]]
        is_picked = position == 0 and len(op.outputs) == 1 and KINDS[op.kind].touches is Touches.OUTPUT
        is_beyond = not any(tensor in known for known in self._at_hand)
        if not (is_picked and is_beyond) or (made.elements or 0) >= (whole.elements or 0):
            return whole
        return replace(whole, shape=made.shape, stored_bytes=None)

    def _operand(self, way: Direction, role: str, tensor: Tensor, memory: str, size: int | None = None) -> Operand:
        place = self._memory_number[memory]
        return Operand(way, role, tensor.name, place, tensor.dtype.label, tensor.shape or (), size)


def _extents(shape: tuple[int, ...] | None) -> str:
    return " x ".join(map(str, shape or ()))
