"""A model of PyTorch made ready on a device, run, timed, and watched by torch's profiler."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils._pytree import tree_map_only

from ...backends.measuring import Measuring, allowed_cpus
from ...backends.worker import timed
from ...core.errors import ModelError, UsageError, first_line, printable
from ...readers.torch import TorchModel, for_inference, quiet

if TYPE_CHECKING:
    from torch.nn import Module

INFERENCE = "opscope inference"  # what marks one on the profiler's timeline
KINETO = "kineto"  # name of the format that the profiler writes
CUDA = "cuda"
GRAPH, COMPILE, EAGER = "graph", "compile", "eager"
_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_CAPTURE_ROUNDS = 3  # of a module before its kernels are recorded: libraries choose kernels in the first


@dataclass(frozen=True, slots=True)
class Choices:
    """Checked choices of a measurement in PyTorch."""

    measuring: Measuring
    device: str
    mode: str = EAGER
    dtype: str = ""  # empty: as the model has it

    @staticmethod
    def of(measuring: Measuring, device: str, mode: str, dtype: str) -> Choices:
        has_gpu = torch.cuda.is_available()
        where = device or (CUDA if has_gpu else "cpu")
        if where == CUDA and not has_gpu:
            raise UsageError("--device cuda: this torch sees no GPU; expected a machine with one, or --device cpu")
        if mode == GRAPH and where != CUDA:
            raise UsageError(
                f"--mode graph: CUDA graphs are of a GPU, and the device is {where}; expected --device cuda"
            )
        return Choices(measuring, where, mode, dtype)

    @property
    def on_gpu(self) -> bool:
        return self.device == CUDA


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model on its device, with inputs."""

    source: str
    module: Module
    inputs: tuple[object, ...]
    call: Callable[[], object]  # one inference, until its last kernel has ended
    keywords: Mapping[str, object] = field(default_factory=dict)
    zeros: int = 0  # inputs that were zeros, and are random now

    def tensors(self) -> list[torch.Tensor]:
        return [value for value in (*self.inputs, *self.keywords.values()) if isinstance(value, torch.Tensor)]

    @property
    def weight_bytes(self) -> int:
        kept = {each.data_ptr(): each.nbytes for each in (*self.module.parameters(), *self.module.buffers())}
        return sum(kept.values())


@contextmanager
def prepared(model: TorchModel, choices: Choices) -> Iterator[Prepared]:
    """The model as it is to run: for inference, on the device, in the mode; the user's module comes back as it was."""
    module, inputs, keywords = _runnable(model)
    if any(each.is_meta for each in (*module.parameters(), *module.buffers())):
        raise ModelError(
            model.source, "", "is on meta, and PyTorch needs weights to run; expected a module that has some"
        )
    module = _moved(module, choices)
    draw, zeros = torch.Generator().manual_seed(choices.measuring.seed), 0

    def placed(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal zeros
        if tensor.is_floating_point():
            if not tensor.any():  # stands for its shape; what a device draws depends on values
                zeros += 1
                tensor = torch.rand(tensor.shape, generator=draw, dtype=torch.float32).mul(2).sub(1).to(tensor.dtype)
            tensor = tensor.to(_DTYPES.get(choices.dtype, tensor.dtype))
        return tensor.to(choices.device)

    inputs, keywords = tree_map_only(torch.Tensor, placed, (inputs, keywords))
    with _training_kept(model, module), _threads(choices.measuring), torch.inference_mode():
        ready = Prepared(model.source, module, inputs, lambda: module(*inputs, **keywords), keywords, zeros)
        with told(model.source):
            ready.call()
        yield _in_mode(ready, choices)


def _runnable(model: TorchModel) -> tuple[Module, tuple[object, ...], Mapping[str, object]]:
    if not model.is_exported:
        if model.inputs is None:
            model.with_shapes({}, None)  # which says what was expected
        return model.module, model.inputs or (), model.keywords
    example = model.module.example_inputs
    if example is None:
        raise ModelError(model.source, "", "was saved without example inputs; expected an exported program with some")
    return model.module.module(), *example


def _moved(module: Module, choices: Choices) -> Module:
    """On the device, in the type; the user's own module stays where it is."""
    dtype = _DTYPES.get(choices.dtype)
    weights = [*module.parameters(), *module.buffers()]
    fits = dtype is None or all(each.dtype == dtype for each in weights if each.is_floating_point())
    if fits and all(each.device.type == choices.device for each in weights):
        return module
    from copy import deepcopy

    return deepcopy(module).to(device=choices.device, dtype=dtype)


@contextmanager
def _training_kept(model: TorchModel, module: Module) -> Iterator[None]:
    """For inference; an exported program has no such choice."""
    if model.is_exported:
        yield
        return
    with for_inference(module):
        yield


@contextmanager
def _threads(measuring: Measuring) -> Iterator[None]:
    """As many threads as asked for, on as many CPUs; as it was behind."""
    threads, cpus = torch.get_num_threads(), allowed_cpus()
    torch.set_num_threads(measuring.threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus[: measuring.threads])
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cpus)


@contextmanager
def told(source: str, what: str = "") -> Iterator[None]:
    """Whatever torch, or the user's code, raises on the way is one line."""
    try:
        yield
    except Exception as error:  # their classes share no base below Exception
        problem = f"{what}{type(error).__name__}: {first_line(error, 200)}"
        raise ModelError(source, "", f"{problem}; expected a model that runs on these inputs") from error


def _in_mode(ready: Prepared, choices: Choices) -> Prepared:
    module, inputs, keywords = ready.module, ready.inputs, ready.keywords
    call = ready.call
    with told(ready.source, f"--mode {choices.mode}: "):
        if choices.mode == COMPILE:
            with quiet():
                # its own kernels are on the profiler's timeline then, beside those that it calls
                compiled = torch.compile(module, options={"cpp.enable_kernel_profile": True})
                call = lambda: compiled(*inputs, **keywords)  # noqa: E731 – one of three ways to call
                call()
        elif choices.mode == GRAPH:
            call = _recorded(ready).replay
    if choices.on_gpu:
        return Prepared(ready.source, module, inputs, lambda: (call(), torch.cuda.synchronize()), keywords, ready.zeros)
    return Prepared(ready.source, module, inputs, call, keywords, ready.zeros)


def _recorded(ready: Prepared) -> torch.cuda.CUDAGraph:
    """The kernels of one inference as a CUDA graph."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(_CAPTURE_ROUNDS):
            ready.call()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ready.call()
    return graph


def latencies(ready: Prepared, measuring: Measuring) -> list[int]:
    """Of every inference that counts, in ns, without the profiler."""
    with told(ready.source):
        timed(ready.call, measuring.warmup)
        return timed(ready.call, measuring.repeats)


def watch(ready: Prepared, choices: Choices, trace: Path) -> int:
    """The inferences that count under torch's profiler, as a Kineto trace; when the first of them began, monotonic."""
    measuring = choices.measuring
    warmup = max(1, measuring.warmup)  # in the first ones the profiler sets itself up
    activities = [ProfilerActivity.CPU, *(ProfilerActivity.CUDA,) * choices.on_gpu]
    began = 0
    with (
        told(ready.source),
        silent_stderr(),
        profile(
            activities=activities,
            schedule=schedule(wait=0, warmup=warmup, active=measuring.repeats, repeat=1),
            on_trace_ready=lambda found: found.export_chrome_trace(str(trace)),
            record_shapes=True,
            profile_memory=True,
        ) as profiler,
    ):
        for round_ in range(warmup + measuring.repeats):
            began = monotonic_ns() if round_ == warmup else began
            with record_function(INFERENCE):
                ready.call()
            profiler.step()
    return began


@contextmanager
def silent_stderr() -> Iterator[None]:
    """The profiler's library writes to the process's error stream that it starts and stops."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def batch_of(tensors: Sequence[torch.Tensor]) -> int:
    """The first extent of the first input."""
    return int(tensors[0].shape[0]) if tensors and tensors[0].ndim else 1


def device_title(choices: Choices) -> str:
    return printable(torch.cuda.get_device_name()) if choices.on_gpu else ""
