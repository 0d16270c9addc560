"""LiteRT's C interface through ctypes: the way to its profiler, which its Python interface does not offer.

Signatures and the layout of an event are those of ai-edge-litert 2.3 (litert/c/*.h in google-ai-edge/LiteRT). What
another release changes shows as a status that is not 0, as a missing symbol, or as events that make no sense: each of
these raises UnavailableError. Only the worker imports this: a wrong call can end the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

import numpy as np
import numpy.typing as npt

_KINDS = frozenset(1 << bit for bit in range(9))
_SOURCES = frozenset((0, 1, 2))
_CPU, _WRITE = 1, 1
_MOST_TYPE_BYTES = 1024  # a ranked tensor type is passed on as it comes
_RUNTIME_OPTIONS, _CPU_OPTIONS = "runtime_options_string", "xnnpack"

Event = tuple[str, int, int, int, int, int]  # tag, kind, start in µs, length in µs, node, subgraph


class UnavailableError(Exception):
    """This release of the library does not work as expected."""


class _Event(Structure):
    _fields_ = (
        ("tag", c_void_p),
        ("kind", c_int),
        ("start_us", c_uint64),
        ("length_us", c_uint64),
        ("memory", c_int64 * 6),
        ("node", c_uint64),
        ("subgraph", c_uint64),
        ("source", c_int),
    )


_keep = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)  # payloads belong to Python


class Library:
    """Calls that check their status."""

    def __init__(self, file: Path) -> None:
        try:
            self._library = ctypes.CDLL(str(file))
        except OSError as error:
            raise UnavailableError(f"{file.name} cannot be loaded ({error})") from error

    def call(self, name: str, *arguments: object) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise UnavailableError(f"the library has no {name}") from error
        function.restype = c_int
        status = function(*arguments)
        if status:
            raise UnavailableError(f"{name} gives status {status}")

    def made(self, name: str, *arguments: object) -> c_void_p:
        """What a call leaves in its last argument."""
        result = c_void_p()
        self.call(name, *arguments, byref(result))
        return result


class CompiledModel:
    """A model that is ready to run, with its profiler where asked for. Nothing is freed: the process ends soon."""

    def __init__(self, library: Library, model: Path, *, threads: int, kernels: str, profile: bool) -> None:
        self.library = library
        self._payloads: list[object] = []
        self.environment = library.made("LiteRtCreateEnvironment", 0, None)
        self.model = library.made("LiteRtCreateModelFromFile", self.environment, str(model).encode())
        options = library.made("LiteRtCreateOptions")
        library.call("LiteRtSetOptionsHardwareAccelerators", options, c_int(_CPU))
        self._add(options, _CPU_OPTIONS, f'num_threads = {threads}\nkernel_mode = "{kernels}"\n')
        self._add(options, _RUNTIME_OPTIONS, f"enable_profiling = {'true' if profile else 'false'}\n")
        self.compiled = library.made("LiteRtCreateCompiledModel", self.environment, self.model, options)
        self.signature = library.made("LiteRtGetModelSignature", self.model, c_size_t(0))
        self.inputs, self.outputs = self._buffers("Input"), self._buffers("Output")

    def _add(self, options: c_void_p, identifier: str, text: str) -> None:
        name, payload = ctypes.create_string_buffer(identifier.encode()), ctypes.create_string_buffer(text.encode())
        self._payloads += [name, payload]
        made = self.library.made("LiteRtCreateOpaqueOptions", name, ctypes.cast(payload, c_void_p), _keep)
        self.library.call("LiteRtAddOpaqueOptions", options, made)

    def _buffers(self, side: str) -> ctypes.Array[c_void_p]:
        """Make a buffer for every input or output (`side`) of the signature, as the compiled model requires it."""
        count = c_size_t()
        self.library.call(f"LiteRtGetNumSignature{side}s", self.signature, byref(count))
        found = []
        for place in range(count.value):
            number = c_size_t(place)
            tensor = self.library.made(f"LiteRtGetSignature{side}TensorByIndex", self.signature, number)
            kind = ctypes.create_string_buffer(_MOST_TYPE_BYTES)
            self.library.call("LiteRtGetRankedTensorType", tensor, kind)
            needs = self.library.made(
                f"LiteRtGetCompiledModel{side}BufferRequirements", self.compiled, c_size_t(0), number
            )
            found.append(
                self.library.made("LiteRtCreateManagedTensorBufferFromRequirements", self.environment, kind, needs)
            )
        return (c_void_p * len(found))(*[buffer.value for buffer in found])

    def write(self, arrays: Sequence[npt.NDArray[np.generic]]) -> None:
        if len(arrays) != len(self.inputs):
            raise UnavailableError(f"the signature has {len(self.inputs)} inputs, the model {len(arrays)}")
        for buffer, array in zip(self.inputs, arrays, strict=True):
            size = c_size_t()
            handle = c_void_p(buffer)
            self.library.call("LiteRtGetTensorBufferPackedSize", handle, byref(size))
            if size.value != array.nbytes:
                raise UnavailableError(f"an input takes {size.value} bytes, not {array.nbytes}")
            place = c_void_p()
            self.library.call("LiteRtLockTensorBuffer", handle, byref(place), c_int(_WRITE))
            ctypes.memmove(place, np.ascontiguousarray(array).ctypes.data, array.nbytes)
            self.library.call("LiteRtUnlockTensorBuffer", handle)

    def run(self) -> None:
        self.library.call(
            "LiteRtRunCompiledModel",
            self.compiled,
            c_size_t(0),
            c_size_t(len(self.inputs)),
            self.inputs,
            c_size_t(len(self.outputs)),
            self.outputs,
        )

    def profiled_run(self) -> list[Event]:
        """One inference, and its events."""
        profiler = self.library.made("LiteRtCompiledModelGetProfiler", self.compiled)
        if not profiler.value:
            raise UnavailableError("the compiled model has no profiler")
        self.library.call("LiteRtResetProfiler", profiler)
        self.library.call("LiteRtStartProfiler", profiler)
        self.run()
        self.library.call("LiteRtStopProfiler", profiler)
        return self._events(profiler)

    def _events(self, profiler: c_void_p) -> list[Event]:
        count = c_int()
        self.library.call("LiteRtGetNumProfilerEvents", profiler, byref(count))
        # Twice the room: a release with larger events writes past ours, and is found out below.
        room = (_Event * (2 * max(count.value, 1)))()
        self.library.call("LiteRtGetProfilerEvents", profiler, count, ctypes.cast(room, POINTER(_Event)))
        events = room[: count.value]
        if not events or any(e.kind not in _KINDS or e.source not in _SOURCES or not e.tag for e in events):
            raise UnavailableError("the profiler's events have another layout than that of release 2.3")
        return [(_tag(e), e.kind, e.start_us, e.length_us, e.node, e.subgraph) for e in events]


def _tag(event: _Event) -> str:
    return (c_char_p(event.tag).value or b"").decode("utf-8", "replace")
