"""Fields of a config: each read with its type and its limits; what is wrong is said in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.errors import ModelError, printable

LARGEST = 1 << 20  # of sizes: no model has a tenth of it
LARGEST_VOCABULARY = 1 << 24
LARGEST_CONTEXT = 1 << 27  # tokens
MOST_LAYERS = 1000
MOST_EXPERTS = 1 << 12
LAYER_TYPES = ("full_attention", "sliding_attention", "chunked_attention", "linear_attention")
_EARLIER = {"attention": "full_attention", "mamba": "linear_attention", "conv": "linear_attention"}  # words for them


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object of a config. A null is a field that is not there, as Hugging Face writes it."""

    source: str
    values: Mapping[str, object]
    place: str = ""  # of a nested object: `text_config`

    def has(self, *names: str) -> bool:
        return any(self.values.get(name) is not None for name in names)

    def error(self, name: str, problem: str) -> ModelError:
        return ModelError(self.source, f"{self.place}.{name}" if self.place else name, problem)

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = LARGEST) -> int:
        """A whole number; of several names, the first that is there."""
        expected = f"expected a whole number from {least} to {most}"
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise self.error(name, f"is {_shown(value)}; {expected}")
            return value
        if default is None:
            raise self.error(names[0], f"is missing; {expected}")
        return default

    def optional(self, *names: str, most: int = LARGEST) -> int | None:
        """A whole number of at least 1, or None where the field is missing or null."""
        return self.count(*names, most=most) if self.has(*names) else None

    def flag(self, *names: str, default: bool = False) -> bool:
        for name in names:
            value = self.values.get(name)
            if isinstance(value, bool):
                return value
            if value is not None:
                raise self.error(name, f"is {_shown(value)}; expected true or false")
        return default

    def number(self, *names: str, default: float, most: float) -> float:
        """A number above 0 and up to `most`."""
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
                raise self.error(name, f"is {_shown(value)}; expected a number above 0 and up to {most}")
            return float(value)
        return default

    def share(self, *names: str, default: float) -> float:
        return self.number(*names, default=default, most=1)

    def word(self, *names: str, default: str = "") -> str:
        for name in names:
            value = self.values.get(name)
            if isinstance(value, str):
                return value
            if value is not None:
                raise self.error(name, f"is {_shown(value)}; expected a word")
        return default

    def list(self, name: str) -> Sequence[object]:
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > MOST_LAYERS:
            raise self.error(name, f"is {_shown(value)}; expected a list of at most {MOST_LAYERS}")
        return value

    def window(self, default: int | None = None) -> int | None:
        """Tokens of a sliding window; null says that there is none, whatever the default."""
        if "sliding_window" not in self.values:
            return default
        return self.optional("sliding_window", most=LARGEST_CONTEXT)

    def layer_types(self, count: int) -> Sequence[str]:
        """The words of `layer_types`, one for each layer; none where the config leaves it out."""
        words = self.list("layer_types")
        if words and len(words) != count:
            raise self.error("layer_types", f"has {len(words)} words; expected {count}, one for each layer")
        words = [_EARLIER.get(word, word) if isinstance(word, str) else word for word in words]
        for word in words:
            if word not in LAYER_TYPES:
                raise self.error("layer_types", f"has {_shown(word)}; expected {', '.join(LAYER_TYPES)}")
        return [str(word) for word in words]

    def sparse_layers(self, count: int, *, dense_first: int = 0) -> Sequence[bool]:
        """Of each layer whether it has experts: by the words of `mlp_layer_types`, else all but the first ones."""
        words = self.list("mlp_layer_types")
        expected = f"expected {count} words, dense or sparse"
        self.require(len(words) in (0, count), "mlp_layer_types", f"has {len(words)} words; {expected}")
        odd = next((word for word in words if word not in ("dense", "sparse")), None)
        self.require(odd is None, "mlp_layer_types", f"has {_shown(odd)}; {expected}")
        return [word == "sparse" for word in words] or [number >= dense_first for number in range(count)]

    def places(self, name: str, count: int) -> Sequence[int] | None:
        """Numbers of layers, of which there are so many; None where the field is missing or null."""
        if not self.has(name):
            return None
        found = [number for number in self.list(name) if isinstance(number, int) and 0 <= number < count]
        if len(found) != len(self.list(name)):
            raise self.error(name, f"is {_shown(self.values[name])}; expected numbers of layers, 0 to {count - 1}")
        return found

    def near_layers(self, *names: str, default: int) -> Callable[[int], bool]:
        """Which layers have a window, by number: all but each so-manieth, or as the letters L and G say in turn."""
        name = next((name for name in names if isinstance(self.values.get(name), str)), "")
        if not name:
            every = self.count(*names, default=default)
            return lambda number: (number + 1) % every != 0
        letters = self.word(name)
        self.require(
            set(letters) in ({"L"}, {"G"}, {"L", "G"}),
            name,
            f"is {_shown(letters)}; expected a number, or letters L and G",
        )
        return lambda number: letters[number % len(letters)] == "L"

    def inner(self, name: str) -> Fields:
        """The fields of a nested object; none where it is not there."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.error(name, f"is {_shown(value)}; expected an object")
        return Fields(self.source, value or {}, f"{self.place}.{name}" if self.place else name)

    def with_defaults(self, **values: int) -> Fields:
        """The fields, with those that are missing as a config class has them."""
        missing = {name: value for name, value in values.items() if not self.has(name)}
        return replace(self, values={**self.values, **missing})

    def renamed(self, **names: str) -> Fields:
        """The fields, with those that are missing under a family's own name taken from another name for them."""
        found = {own: self.values[other] for own, other in names.items() if not self.has(own) and self.has(other)}
        return replace(self, values={**self.values, **found})

    def require(self, holds: bool, name: str, problem: str) -> None:
        if not holds:
            raise self.error(name, problem)


def _shown(value: object) -> str:
    return printable(repr(value), 40)
