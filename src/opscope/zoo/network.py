"""A network of the zoo: its name, its options, and the function that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..core.errors import UsageError
from .blueprint import Blueprint, Value

Progress = Callable[[int, int], None]  # bytes done, bytes in total
LARGEST = 1 << 20  # default upper limit of an option


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of a network. A default of None is computed from other options, as the description says."""

    name: str
    default: int | str | None
    description: str
    choices: tuple[str, ...] = ()  # of a word; numbers have none
    smallest: int = 1
    largest: int = LARGEST

    def parse(self, given: int | str, *, where: str) -> int | str:
        """Return the option's value, given as a number or text."""
        if self.choices:
            if given in self.choices:
                return given
            raise UsageError(f"{where}: {self.name} is {given!r}; expected one of {', '.join(self.choices)}")
        text = str(given)
        if text.isascii() and text.isdigit() and len(text) <= 18 and self.smallest <= int(text) <= self.largest:
            return int(text)
        raise UsageError(
            f"{where}: {self.name} is {given!r}; expected a whole number from {self.smallest} to {self.largest}"
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a recipe, checked and complete."""

    name: str
    batch: int
    sequence: int | None
    options: Mapping[str, int | str | None]

    def number(self, name: str, otherwise: int | None = None) -> int:
        value = self.options[name]
        value = otherwise if value is None else value
        if not isinstance(value, int):
            raise TypeError(f"{self.name}: option {name} is {value!r}, not a number")
        return value

    def word(self, name: str) -> str:
        return str(self.options[name])

    def require(self, holds: bool, problem: str, expected: str) -> None:
        """Raise an error unless a condition between options holds."""
        if not holds:
            raise UsageError(f"{self.name}: {problem}; expected {expected}")


@dataclass(frozen=True, slots=True)
class Network:
    """One entry of the zoo."""

    name: str
    description: str
    build: Callable[[Blueprint, Settings], None]
    options: tuple[Option, ...] = ()
    formats: tuple[str, ...] = ("onnx",)
    takes_sequence: bool = False
    task: str = "image classification"  # heading of the list


def image_input(plan: Blueprint, settings: Settings) -> Value:
    """Add the input of a network that reads square images, of the size that its options say."""
    size = settings.number("size")
    return plan.input("input", (settings.batch, 3, size, size))


def image_options(size: int, *, classes: int = 1000, smallest: int = 32) -> tuple[Option, ...]:
    """Return the options of a network that reads square images and tells classes apart."""
    return (
        Option("size", size, "height and width of the image", smallest=smallest, largest=8192),
        Option("classes", classes, "classes told apart"),
    )


def divisible(channels: float, by: int = 8) -> int:
    """Return the nearest multiple of `by` that is not more than a tenth below: how published widths are scaled."""
    nearest = max(by, int(channels + by / 2) // by * by)
    return nearest + by if nearest < 0.9 * channels else nearest
