"""Dimensions that neither the file nor the user fixes: which they are, what they count, and how to ask for them.

All are asked for together, by name, with sizes that the network can be expected to run with:

    m.onnx: 2 dimensions are open: 'height', 'width' (input 'x': [1, 3, height, width]); expected their sizes, for
    example --shape x=1x3x224x224
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from shlex import quote

from ...core.errors import OpenDimensionsError, printable
from ..usual_sizes import Purpose
from .first_readers import FirstReaders
from .formulas import evaluate, names_in
from .model import Body, Dims, Value
from .purposes import SCALED, Evidence, Weight, symbol_evidence

# Of suggested sizes, in the order in which they are tried: 1, 1/2, …, 1/32, 2.
SCALES = (*(Fraction(1, 2**step) for step in range(6)), Fraction(2))
_MOST_NAMED = 8  # dimensions, and inputs, in one message
_Key = str | tuple[str, int]  # the name of a dimension, or the input and the axis of one without a name


class OpenDimensions:
    """The open dimensions of some inputs, with a size suggested for each."""

    def __init__(self, body: Body, inputs: Sequence[Value]) -> None:
        readers = FirstReaders(body, inputs)
        self._open = [value for value in inputs if value.shape is None]
        self._dims: dict[str, Dims] = {
            value.name: (None,) * readers.rank(value.name) if value.dims is None else value.dims for value in self._open
        }
        self._found: dict[_Key, Evidence] = {}
        for value in self._open:
            for axis, dim in enumerate(self._dims[value.name]):
                if not isinstance(dim, int):
                    self._look(readers, value, axis, dim)
        self._suggest(SCALES[0])

    def _suggest(self, scale: Fraction) -> None:
        """Set the sizes to suggest: pixels, samples, tokens and the like scaled, what weights demand as it is."""
        self._scaled = {
            key: max(1, int(found.size * scale)) if found.purpose in SCALED else found.size
            for key, found in self._found.items()
        }
        self.sizes = {key: size for key, size in self._scaled.items() if isinstance(key, str)}  # of named ones
        self.suggested: dict[str, Dims] = {  # shapes of the inputs with open dimensions
            name: tuple(self._size(name, axis, dim) for axis, dim in enumerate(dims))
            for name, dims in self._dims.items()
        }

    def fit(self, runs: Callable[[], bool]) -> None:
        """Suggest the first sizes that the network runs with: a table of 64 positions does not take 128 tokens."""
        for scale in SCALES:
            self._suggest(scale)
            if runs():
                return
        self._suggest(SCALES[0])

    @property
    def is_batch_only(self) -> bool:
        """Whether nothing but the batch is open."""
        has_ranks = all(value.dims is not None for value in self._open)
        return has_ranks and all(found.purpose is Purpose.BATCH for found in self._found.values())

    def question(self, source: str) -> OpenDimensionsError:
        """Return the error that asks for all of them."""
        count = len(self._found)
        names = _listed([_key_text(key) for key in self._found])
        opened = f"{count} dimension{'s are' if count > 1 else ' is'} open: {names} ({described(self._open)})"
        asked = f"{opened}; expected {'their sizes' if count > 1 else 'its size'}"
        symbols = self.sizes if len(self.sizes) == len(self._found) else {}
        return OpenDimensionsError(source, asked, " ".join(self._flags()), symbols)

    def _look(self, readers: FirstReaders, value: Value, axis: int, dim: str | None) -> None:
        if dim is None:
            self._weigh((value.name, axis), list(readers.evidence(value, axis)))
            return
        for name in names_in(dim):
            told = readers.evidence(value, axis, dim) if name == dim else symbol_evidence(name)
            self._weigh(name, [*told, Evidence(Weight.RANK, Purpose.UNKNOWN, Purpose.UNKNOWN.size)])

    def _weigh(self, key: _Key, told: Sequence[Evidence]) -> None:
        """Keep the weightiest evidence of a dimension, the first of several."""
        known = [self._found[key]] if key in self._found else []
        self._found[key] = max([*known, *told], key=lambda evidence: evidence.weight)

    def _size(self, name: str, axis: int, dim: int | str | None) -> int:
        if isinstance(dim, int):
            return dim
        if dim is None:
            return self._scaled[name, axis]
        size = evaluate(dim, self.sizes)
        return Purpose.UNKNOWN.size if size is None else size

    def _flags(self) -> list[str]:
        """Return the options that set all of them: by dimension where that takes fewer, else by input."""
        inputs = {value.name for value in self._open}
        if len(self.sizes) == len(self._found) < len(inputs) and inputs.isdisjoint(self.sizes):
            return [_flag(name, (size,)) for name, size in self.sizes.items()]
        return [_flag(name, dims) for name, dims in self.suggested.items()]


def described(inputs: Sequence[Value]) -> str:
    """Return inputs with their shapes, for a message."""
    return _listed([_input_text(value) for value in inputs]) or "no inputs"


def _flag(name: str, dims: Dims) -> str:
    return f"--shape {quote(printable(name, limit=len(name)))}={'x'.join(map(str, dims))}"


def _key_text(key: _Key) -> str:
    return repr(printable(key)) if isinstance(key, str) else f"dimension {key[1]} of {printable(key[0])!r}"


def _input_text(value: Value) -> str:
    if value.dims is None:
        return f"input {printable(value.name)!r}: no shape in the file"
    dims = ", ".join("?" if dim is None else printable(str(dim)) for dim in value.dims)
    return f"input {printable(value.name)!r}: [{dims}]"


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return ", ".join(texts[:_MOST_NAMED]) + more
