"""Every error a user can cause or mend. The message is `where: what is wrong; what was expected`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class ProfilerError(Exception):
    """Base of every error a user can cause or mend; the CLI prints it without a traceback and exits 2."""


class UsageError(ProfilerError):
    """The command line, or a call's arguments, cannot be carried out."""


class FileError(ProfilerError):
    """A file that is read is not as it should be; where in it, if that is known."""

    def __init__(self, source: str, place: str, problem: str) -> None:
        self.source, self.place, self.problem = source, place, problem
        super().__init__(f"{source}: {place}: {problem}" if place else f"{source}: {problem}")


class ModelError(FileError):
    """The model file breaks its format, or says too little to be profiled."""


class OpenDimensionsError(ModelError):
    """Dimensions that neither the file nor the user sizes; `flags` are options that do, as an example.

    `symbols` are the same sizes by name, empty where a dimension has none: other command lines ask for these.
    """

    def __init__(self, source: str, opened: str, flags: str, symbols: Mapping[str, int]) -> None:
        self.flags, self.symbols = flags, dict(symbols)
        super().__init__(source, "", f"{opened}, for example {flags}")


class TargetError(FileError):
    """The target file breaks the schema, or no target has the name asked for."""


class ProgramError(ProfilerError):
    """The program file breaks its format, or does not go with what it is used for."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")


class CaptureError(ProfilerError):
    """The capture's bytes break the format."""

    def __init__(self, source: str, offset: int, problem: str) -> None:
        super().__init__(f"{source}: byte {offset:#x}: {problem}")


class ImportFileError(FileError):
    """A file of another tool breaks its format, or is of no format that is known."""


def printable(text: str, limit: int = 120) -> str:
    """A name from a file, made safe for one line of a terminal: control characters escaped, cut at `limit`."""
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def in_words(error: BaseException, limit: int = 200) -> str:
    """An error of somebody else's code, in one line: its class and what it says."""
    return printable(f"{type(error).__name__}: {error}", limit)


def first_line(error: BaseException, limit: int = 300) -> str:
    """What an error of many lines says first, to go on behind it; its class where it says nothing."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return printable(line, limit).rstrip(".;:") or type(error).__name__


def os_reason(error: OSError) -> str:
    """Why the operating system refused, in its words."""
    return error.strerror or type(error).__name__


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest known word, as a question; nothing where none is near."""
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}? " if near else ""
