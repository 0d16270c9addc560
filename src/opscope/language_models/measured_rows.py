"""Rows of language models, as benchmarks publish them → Measurements: what a token and a prompt took on a chip.

A row names a model and says how fast it decodes, how fast it reads a prompt, or both. Benchmarks name columns
differently; those of `_COLUMNS` mean the same.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from ..calibration.measurements import MOST_ROWS, Measurement, Steps, read_measurements
from ..core.errors import ImportFileError, ProfilerError, UsageError, printable
from ..graph.graph import Graph
from ..machine.catalogue import catalogue
from ..machine.target import Target
from .architecture import Architecture
from .built_in import BUILT_IN
from .config import FILE, load
from .decoder import decode
from .decoder_graph import Storage, repeated_graph
from .formats import weight_format
from .points import Estimator, Serving, check_takes

DECODE, PREFILL = "decode", "prefill"
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "model": ("model",),
    "size": ("size",),
    "chip": ("chip", "chipset", "device"),
    "precision": ("precision", "weights", "dtype"),
    "cache": ("kv",),
    "batch": ("batch",),
    "prompt": ("prompt", "prompt_len", "seqlen"),
    "context": ("context", "context_length", "ctx_len"),
    "decode": ("decode_tok_s", "tokens_per_s", "tps"),
    "prefill": ("prefill_tok_s",),
    "ttft": ("ttft_ms", "ttft_min_ms"),
}
_SAME = {"q4_0": "w4", "q8_0": "w8", "fp16": "f16", "float16": "f16", "float": "f16", "": "f16"}
_LEFT_OUT = re.compile(r"[^a-z0-9]|instruct|chat|v(?=\d)")  # of a model's name: what repositories write differently
_MOST_TOKENS = 1 << 23
_MOST_RATE = 1e9


def read_rows(sources: Sequence[Path], *, models: Path | None = None) -> list[Measurement]:
    """Rows of CSV files and latencies of runs, of networks or of language models."""
    by_kind: dict[bool, list[Path]] = {}
    for source in sources:
        by_kind.setdefault(_has_tokens(source), []).append(source)
    if len(by_kind) > 1:
        first = by_kind[True][0]
        raise UsageError(f"{first}: has rows of language models, others have networks; expected one kind at a time")
    if True not in by_kind:
        return read_measurements(sources, models=models)
    found = [row for source in sources for row in _read(source, models or source.parent)]
    if not found:
        raise ImportFileError(str(sources[0]), "", "no rows; expected at least one measurement")
    return found


def _has_tokens(source: Path) -> bool:
    """Whether a file has a column of tokens per second."""
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            return not set(next(csv.reader(file), [])).isdisjoint((*_COLUMNS["decode"], *_COLUMNS["prefill"]))
    except (OSError, UnicodeDecodeError, csv.Error):
        return False  # a folder of a run, or nothing that can be read: the other reader says which


def _read(source: Path, models: Path) -> list[Measurement]:
    rows = _rows(source)
    known: dict[str, Architecture | UsageError] = {}
    contexts: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        if row.name not in known:
            known[row.name] = row.architecture(models)
        contexts.setdefault((row.name, row.precision), set()).update(filter(None, [row.tokens("context")]))
    return [each for row in rows for each in row.measurements(known[row.name], contexts[row.name, row.precision])]


def _rows(source: Path) -> list[_Row]:
    found: list[_Row] = []
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            for cells in rows:
                if len(found) >= MOST_ROWS:
                    raise ImportFileError(str(source), f"line {rows.line_num}", f"more than {MOST_ROWS} rows")
                found.append(_Row(cells, source, rows.line_num))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = printable(str(error))
        raise ImportFileError(str(source), "", f"not CSV text ({problem}); expected a CSV file") from error
    return found


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a file, by what its columns mean."""

    cells: Mapping[str, str | None]
    source: Path
    line: int

    def error(self, problem: str) -> ImportFileError:
        return ImportFileError(str(self.source), f"line {self.line}", problem)

    def text(self, meaning: str) -> str:
        found = (self.cells.get(column) for column in _COLUMNS[meaning])
        return next((text.strip() for text in found if text and text.strip()), "")

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.text("model"), self.text("size"))))

    @property
    def precision(self) -> str:
        """As `--weights` takes it; groups of weights that share a scale are not told apart."""
        word = self.text("precision").lower().partition("_g")[0]
        return _SAME.get(word, word)

    def rate(self, meaning: str) -> float | None:
        """A number above 0; None: the row has none."""
        text = self.text(meaning)
        try:
            found = float(text) if text else None
        except ValueError:
            found = -1.0
        if found is not None and not (isfinite(found) and 0 < found < _MOST_RATE):
            raise self.error(f"{_COLUMNS[meaning][0]} is {printable(repr(text))}; expected a number above 0")
        return found

    def tokens(self, meaning: str) -> int | None:
        found = self.rate(meaning)
        if found is not None and (found != int(found) or found > _MOST_TOKENS):
            raise self.error(f"{_COLUMNS[meaning][0]} is {found:g}; expected a whole number up to {_MOST_TOKENS:,}")
        return None if found is None else int(found)

    def architecture(self, models: Path) -> Architecture | UsageError:
        """A config in the folder of models, or the built-in model of that name, however it is written; or why not."""
        name = self.name
        try:
            places = (models / f"{name}.json", models / name / FILE, models / name)
            found = next((path for path in places if name and path.is_file()), None)
        except OSError:  # a name that no file can have
            found = None
        if found is not None:
            return load(found)
        key = _LEFT_OUT.sub("", name.lower())
        called = next((each for each in BUILT_IN if _LEFT_OUT.sub("", each) == key), None)
        if called is None:
            problem = f"model {printable(repr(name))} is neither built in nor in {printable(str(models))}"
            return UsageError(f"{problem}; expected a name of `opscope llm --list`, or NAME.json there")
        return load(called)

    @property
    def prompt(self) -> int | None:
        """Tokens of the prompt; a row with a rate and a time to the first token tells how many there were."""
        prompt, prefills, ttft = self.tokens("prompt"), self.rate("prefill"), self.rate("ttft")
        return round(prefills * ttft / 1e3) if prompt is None and prefills is not None and ttft is not None else prompt

    def measurements(self, model: Architecture | UsageError, contexts: Collection[int]) -> list[Measurement]:
        """What a token took, and what a prompt took.

        A prompt of a few tokens was measured on its own, in the smallest of the contexts that there are. Else a rate is
        that of prompts as long as the context.

        Args:
            contexts: those that the file has rows of the model for.
        """
        batch, context, prompt = self.tokens("batch") or 1, self.tokens("context"), self.prompt
        decodes, prefills, ttft = self.rate("decode"), self.rate("prefill"), self.rate("ttft")
        if self.text("prompt") or context is None or prompt is None:
            context = context or prompt
        elif prompt < _PIECE:
            context = min((each for each in contexts if each >= prompt), default=context)
        else:
            prompt, ttft = context, None
        found = []
        if decodes is not None and context is not None:
            found.append(self._measurement(model, DECODE, (batch, 1, context), batch / decodes))
        if prompt is not None and context is not None and (ttft is not None or prefills is not None):
            seconds = ttft / 1e3 if ttft is not None else batch * prompt / (prefills or 1.0)
            found.append(self._measurement(model, PREFILL, (batch, prompt, max(prompt, context)), seconds))
        if not found:
            raise self.error("says nothing; expected decode_tok_s and a context, or a prompt and ttft_ms")
        return found

    def _measurement(
        self, model: Architecture | UsageError, phase: str, point: tuple[int, int, int], seconds: float
    ) -> Measurement:
        try:
            weights = weight_format(self.precision)
        except ProfilerError as error:
            raise self.error(f"precision is {printable(repr(self.precision))}: {error}") from error
        cache = self.text("cache") or ("f16" if weights.flows.is_float else "i8")
        storage = Storage.of(weights.word, cache)

        def graphs(target: Target) -> list[tuple[Graph, float]]:
            if isinstance(model, UsageError):
                raise model
            check_takes(target, storage)
            steps = Estimator(model, target, Serving(storage))
            chunks = [(decode(point[0], point[2]), 1.0)] if phase == DECODE else steps.chunks(*point)
            return [(repeated_graph(model, step, steps.storage), times) for step, times in chunks]

        return Measurement(
            place=f"{self.source.name}:{self.line}",
            model=Steps(self.name if isinstance(model, UsageError) else model.name, phase, point, graphs),
            seconds=seconds,
            chip=_chip(self.text("chip")),
            precision=weights.word,
            batch=point[0],
        )


_PIECE = 128  # tokens that benchmarks take as one piece of a prompt, if they do not say


def _chip(word: str) -> str:
    """The target of the catalogue that a chip is called like, with or without its maker; else the word."""
    lower = word.lower()
    named = (name for name in sorted(catalogue(), key=len, reverse=True) if f"-{lower}".endswith(f"-{name}"))
    return next(named, word)
