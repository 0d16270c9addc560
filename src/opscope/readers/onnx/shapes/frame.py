"""Frame: what is known of the tensors of one body, and their elements, computed when a rule asks for them.

A model computes shapes from shapes: `Reshape(x, Concat(Gather(Shape(x), 0), [-1]))`. The Reshape asks for the elements
of its target; those of Concat, Gather and Shape are computed then, and nothing else of the model is. Weights are not
read unless a shape depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from ....core.errors import ModelError, printable
from ..model import Constant
from ..parse import small_floats
from ..wire import Wire
from .call import Call, Contradiction, Open, Operand
from .rules import OF_SHAPES, RESHAPED

if TYPE_CHECKING:
    from .call import Array
    from .values import ValueRule

MAX_VALUE_ELEMENTS = 1 << 20  # of one tensor
MAX_TOTAL_ELEMENTS = 1 << 26  # of all tensors that are computed
MAX_STEPS = 50_000  # nodes looked at, over all trips of loops


@dataclass(slots=True)
class Limits:
    """How much more may be computed; hostile models ask for more than any machine has."""

    elements: int = MAX_TOTAL_ELEMENTS
    steps: int = MAX_STEPS

    def take_elements(self, count: int, place: str) -> None:
        if count > MAX_VALUE_ELEMENTS:
            raise Open(f"{place} makes {count:,} elements, more than are evaluated ({MAX_VALUE_ELEMENTS:,})")
        self.elements -= max(1, count)
        if self.elements < 0:
            raise Open(f"{place} is where more than {MAX_TOTAL_ELEMENTS:,} elements would be evaluated")

    def take_step(self, place: str) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Open(f"{place} is where loops would take more than {MAX_STEPS:,} steps to evaluate")


@dataclass(slots=True)
class Frame:
    """The names of one body; those of the bodies around it are found through `parent`."""

    wire: Wire
    limits: Limits
    constants: Mapping[str, Constant] = field(default_factory=dict)
    parent: Frame | None = None
    is_certain: bool = True  # whether its nodes run whenever those around it do: not in a loop, or one of two branches
    contradiction: Contradiction | None = None  # why it cannot run, with the shapes that its operands have
    operands: dict[str, Operand] = field(default_factory=dict)
    calls: dict[str, tuple[Call, int]] = field(default_factory=dict)  # tensor → the node that makes it, which output
    aliases: dict[str, tuple[Frame, str]] = field(default_factory=dict)  # outputs of a branch, under their outer name
    arrays: dict[str, Array | Open] = field(default_factory=dict)  # elements, or why there are none
    deferred: dict[str, Callable[[], None]] = field(default_factory=dict)  # fills `arrays` for outputs of a loop

    def home(self, name: str) -> Frame:
        """The frame that defines a name."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.operands:
                return frame
            frame = frame.parent
        raise Open(f"nothing provides {printable(name)!r}")

    def operand(self, name: str) -> Operand:
        return self.home(name).operands[name]

    def integers(self, name: str) -> tuple[int, ...]:
        """Return the elements of a tensor as integers; those of small constants need no NumPy."""
        home = self.home(name)
        constant = home.constants.get(name)
        if constant is not None and constant.integers is not None:
            return constant.integers
        return tuple(int(item) for item in home.array(name).ravel().tolist())

    def floats(self, name: str) -> tuple[float, ...]:
        """Return the elements of a tensor as floats; those of small constants need no NumPy."""
        home = self.home(name)
        constant = home.constants.get(name)
        found = None if constant is None else constant.integers or small_floats(self.wire, constant)
        return tuple(float(item) for item in (home.array(name).ravel().tolist() if found is None else found))

    def constant(self, constant: Constant) -> Array:
        from ..elements import elements_of

        self.limits.take_elements(prod(constant.dims), f"constant {printable(constant.name)!r}")
        try:
            found = elements_of(constant, self.wire)
        except (ModelError, OSError, ValueError) as error:
            raise Open(f"constant {printable(constant.name)!r} cannot be read: {printable(str(error), 200)}") from error
        if found is None:
            raise Open(f"the elements of constant {printable(constant.name)!r} are not in the file")
        return found

    def array(self, name: str) -> Array:
        """Return the elements of a tensor; those it is computed from come first, from a list and not by recursion."""
        home = self.home(name)
        goals = [(home, name)]
        while goals:
            frame, goal = goals[-1]
            if goal in frame.arrays:
                goals.pop()
                continue
            missing = frame._compute(goal)
            goals.extend(missing)
        found = home.arrays[name]
        if isinstance(found, Open):
            raise found
        return found

    def _compute(self, name: str) -> list[tuple[Frame, str]]:
        """Fill `arrays` for a name, or return what must be computed before."""
        if name in self.constants:
            self._keep(name, lambda: self.constant(self.constants[name]))
        elif name in self.aliases:
            frame, inner = self.aliases[name]
            frame = frame.home(inner)
            if inner not in frame.arrays:
                return [(frame, inner)]
            self.arrays[name] = frame.arrays[inner]
        elif name in self.deferred:
            self._finish_loop(name)
        elif name in self.calls:
            return self._compute_call(name)
        else:
            what = "input" if self.parent is None else "the loop's"
            self.arrays[name] = Open(f"it depends on the values of {what} {printable(name)!r}")
        return []

    def _finish_loop(self, name: str) -> None:
        reason = Open(f"the value of {printable(name)!r} is decided at run time")
        try:
            self.deferred[name]()
        except Open as why:
            reason = why
        self.arrays.setdefault(name, reason)

    def _compute_call(self, name: str) -> list[tuple[Frame, str]]:
        """Compute the node that makes a tensor, or return which of its inputs have to be computed before.

        The caller keeps a list of what is to do, since graphs are deeper than a stack of calls may be. A node that no
        rule evaluates, or one of whose inputs has no elements, fills its outputs with the reason. Ops of shapes read
        no elements.
        """
        from .values import VALUE_RULES

        call, _ = self.calls[name]
        node = call.node
        rule = VALUE_RULES.get(node.op_type) if not node.domain else None
        if rule is None and node.op_type not in (*RESHAPED, "Expand"):
            self._fail(call, Open(f"it depends on what {call.place} computes"))
            return []
        missing = []
        for read in () if node.op_type in OF_SHAPES else filter(None, node.inputs):
            try:
                home = self.home(read)
            except Open as reason:
                self._fail(call, reason)
                return []
            found = home.arrays.get(read)
            if isinstance(found, Open):
                self._fail(call, found)
                return []
            if found is None:
                missing.append((home, read))
        if not missing:
            self._evaluate(call, rule)
        return missing

    def _evaluate(self, call: Call, rule: ValueRule | None) -> None:
        """Compute all outputs of a node whose inputs are computed."""
        import numpy as np

        names = [name for name in call.node.outputs if name]
        try:
            for name in names:
                shape = self.operands[name].shape
                if shape is None:
                    raise Open(self.operands[name].because)
                self.limits.take_elements(prod(shape), call.place)
            if rule is not None:
                with np.errstate(all="ignore"):
                    found = rule(call)
            else:
                shape = self.operands[names[0]].shape or ()
                found = [
                    np.broadcast_to(call.array(0), shape)
                    if call.node.op_type == "Expand"
                    else call.array(0).reshape(shape)
                ]
        except Open as reason:
            self._fail(call, reason)
            return
        except (ArithmeticError, IndexError, MemoryError, TypeError, ValueError) as error:
            self._fail(call, call.undecided(f"cannot be evaluated: {printable(str(error), 200)}"))
            return
        for name, array in zip(call.node.outputs, found, strict=False):
            if name:
                whole = array.shape == self.operands[name].shape
                self.arrays[name] = array if whole else call.undecided("has a value of another shape than its output")
        for name in names:
            self.arrays.setdefault(name, call.undecided("has an output that is not evaluated"))

    def _keep(self, name: str, read: Callable[[], Array]) -> None:
        try:
            self.arrays[name] = read()
        except Open as reason:
            self.arrays[name] = reason

    def _fail(self, call: Call, reason: Open) -> None:
        for name in call.node.outputs:
            if name:
                self.arrays[name] = reason
