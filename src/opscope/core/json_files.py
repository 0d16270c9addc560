"""JSON of files → typed values, and values → the JSON of files; what is wrong with a file is said in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO, TypeVar

import msgspec

from .. import __version__
from .errors import ImportFileError, printable

T = TypeVar("T")
PRODUCER: Mapping[str, str] = {"name": "opscope", "version": __version__}  # as every file of ours names its writer


def decode_json(raw: bytes, decoder: msgspec.json.Decoder[T], *, source: str) -> T:
    """JSON as the type of a decoder; what does not fit is named by byte or by field.

    Decoders are made where modules are: two threads that make the first of a type at once can end the process.
    """
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise ImportFileError(
            source, "", f"{printable(str(error), 300)}; expected the fields of this format"
        ) from error
    except UnicodeDecodeError as error:
        raise ImportFileError(source, f"byte {error.start:#x}", "a name is not valid UTF-8; expected JSON") from error
    except msgspec.DecodeError as error:
        problem = str(error).replace("Input data was truncated", f"cut short after {len(raw)} bytes")
        raise ImportFileError(source, "", f"{problem}; expected JSON") from error
    except RecursionError as error:
        raise ImportFileError(source, "", "nested too deep; expected the JSON of a profile") from error


def json_bytes(value: object, *, indent: int = 2) -> bytes:
    """A value as indented JSON, for people and for tools that compare by line; ends with a newline."""
    return msgspec.json.format(msgspec.json.encode(value), indent=indent) + b"\n"


def write_json(value: object, out: TextIO, *, indent: int = 2) -> None:
    """The same, to a stream of text."""
    out.write(json_bytes(value, indent=indent).decode())
