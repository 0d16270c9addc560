"""What a plug-in offers, as data: names, help lines, options, file signatures, and where the code is.

A manifest is all that help, parsing of a command line and detection of a file's format load. A module that holds one
imports nothing of opscope but `core`; code is named by strings, ".module:attribute" relative to the plug-in's package
or "package.module:attribute", and is imported when it is used. The classes are named tuples and not dataclasses, which
take several times as long to make: every command pays for them, `opscope --help` too. Annotations are no strings here,
as each string would be compiled.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from os import PathLike
from typing import NamedTuple

from .provenance import Provenance

Value = str | int | bool | None  # of an option
MODULES = "torch"  # among the formats that a backend takes: modules of PyTorch, as they are


class Option(NamedTuple):
    """A choice that a backend offers, as the command line shows it."""

    name: str
    help: str
    choices: tuple[str, ...] = ()
    default: Value = None
    is_flag: bool = False
    is_number: bool = False
    metavar: str = "V"
    bare: str = ""  # what the option means without a value; empty: it needs one
    differs: str = ""  # what only this backend says of it, where `help` is what every backend that has it says


class Signature(NamedTuple):
    """How a file of a format looks: everything that is given here holds for its first bytes, inflated if packed."""

    start: bytes = b""  # a regular expression that matches at the beginning
    contains: tuple[bytes, ...] = ()  # bytes that all occur
    finds: tuple[bytes, ...] = ()  # regular expressions that are all found somewhere
    lacks: tuple[bytes, ...] = ()  # regular expressions that are found nowhere
    file_name: str = ""  # what the file is called, where its content alone does not decide

    def fits(self, head: bytes, name: str) -> bool:
        return (
            (not self.file_name or name == self.file_name)
            and re.match(self.start, head) is not None
            and all(part in head for part in self.contains)
            and all(re.search(pattern, head) for pattern in self.finds)
            and not any(re.search(pattern, head) for pattern in self.lacks)
        )


class Format(NamedTuple):
    """A kind of profile file that can be imported."""

    name: str
    describe: str  # one line for `opscope import --list`
    signatures: tuple[Signature, ...]  # a file of which one fits is taken to be of this format
    importer: str  # place of a class or object with `read(path)`
    is_generic: bool = False  # offered a file after all others, as it fits files that others know better
    # whose files, given too, are told with it: `read(path, beside=paths)`; its own: one file is a part of the whole
    with_formats: tuple[str, ...] = ()

    def fits(self, head: bytes, name: str) -> bool:
        """Whether a file that begins like this is of this format; `name` is a hint only."""
        return any(signature.fits(head, name) for signature in self.signatures)


class Hint(NamedTuple):
    """A kind of file that is often given to `opscope import` and cannot be read: what it is, and what to do."""

    signatures: tuple[Signature, ...]
    what: str
    expected: str


class Can(StrEnum):
    """What a backend can do besides profiling a model; the value is the word of the command line for it."""

    ADVISE = "advise"  # try other options, and report those that are faster
    WHAT_IF = "whatif"  # profile every combination of some options
    EXECUTE = "execute"  # run the model for its outputs
    CHROME_TRACE = "output-chrome-trace"  # the timeline as a file
    SUMMARY_FILES = "summary files"  # the files that plug-ins make of a profile


class Section(StrEnum):
    """A part of what `opscope profile` prints of a recording, beside the screen that every profile has."""

    LANES = "lanes"
    OPS = "ops"
    WAITS = "waits"
    KERNELS = "kernels"
    PLACEMENT = "placement"
    CAUSES = "causes"  # all that the source found by itself, not the costliest alone
    STAGES = "stages"


USUAL_SECTIONS = (Section.LANES, Section.OPS, Section.PLACEMENT, Section.CAUSES)


class Levels(NamedTuple):
    """What is printed of what a backend tells, by the value of one of its options."""

    option: str
    sections: tuple[tuple[str, tuple[Section, ...]], ...]  # value → what of it is printed

    @property
    def words(self) -> frozenset[str]:
        return frozenset(word for word, _ in self.sections)


class Unpacked(NamedTuple):
    """Packages that are not installed but unpacked, whether or not they would run here: a finishing step sees to that.

    Without their dependencies.
    """

    packages: tuple[str, ...]  # requirements with their versions, for pip
    python: str = ""  # version that they are made for, such as 3.12; empty: that of opscope
    platforms: tuple[str, ...] = ()  # tags of wheels to take, best first


class Environment(NamedTuple):
    """Programs that need another Python or C library than ours: `opscope setup NAME` makes a folder of them.

    The folder has its programs in `bin`. Without it they are taken from `--tool`, the variable, or the PATH.
    """

    name: str
    title: str
    programs: tuple[str, ...]  # what a backend starts; the environment is there when all of them are
    packages: tuple[str, ...]  # requirements with their versions, for pip; installed in a virtual environment
    licence: str
    megabytes: int  # on the disk, when it is made
    python: str = ""  # version that the packages are made for, such as 3.10; empty: any that opscope runs on
    agreement: str = ""  # where terms stand that must be agreed to before it is made; empty: none
    finish: str = ""  # place of a function (Making) that completes the folder after its packages are there
    version_words: tuple[str, ...] = ("--version",)  # for the first program, which then says what it is
    with_dependencies: bool = True  # of `packages`; False: they name everything
    unpacked: tuple[Unpacked, ...] = ()  # further packages, in the folder `packages`
    systems: tuple[str, ...] = ()  # that the programs run on, such as linux-x86_64; empty: any

    @property
    def variable(self) -> str:
        """The environment variable that says where its programs are."""
        return f"OPSCOPE_{self.name.upper().replace('-', '_')}"

    @property
    def first_package(self) -> str:
        """The requirement whose version is that of the environment; empty: it has none."""
        return next(iter((*self.packages, *(each for group in self.unpacked for each in group.packages))), "")


class Form(NamedTuple):
    """What a model file is, as far as compilers care: its format, and what its products are computed with."""

    format: str  # onnx, tflite, mlir
    precision: str = ""  # float, or a word of core/precisions such as w8a8; empty, in a conversion: whatever comes


class Conversion(NamedTuple):
    """A tool that makes one form of a model from another; `opscope profile` finds the way to what a backend takes."""

    name: str  # of the tool
    source: Form
    makes: Form  # its precision, where empty, is that of the source
    place: str  # of a function (conversion.steps.FileToConvert) → conversion.steps.Made
    environment: str = ""  # name of the one whose programs it starts


class BackendEntry(NamedTuple):
    """A runtime or a vendor's compiler that can profile a model."""

    name: str
    title: str
    place: str  # of a class or object with `state()` and `profile(…)`; with EXECUTE `execute(…)` too
    options: tuple[Option, ...] = ()
    can: frozenset[Can] = frozenset({Can.CHROME_TRACE, Can.SUMMARY_FILES})
    what_if: str = ""  # place of an object with `advise(…)` and `grid(…)`, for ADVISE and WHAT_IF
    axes: tuple[str, ...] = ()  # names of options that a what-if may vary
    recipe: str = ""  # place of a quantization.copies.Recipe: how copies are quantised for it
    models: tuple[str, ...] = ()  # formats that it takes: onnx, tflite, mlir, MODULES; empty: it finds out itself
    # that its models must have: a float model is brought to the first, if nothing else is asked for; empty: any
    precisions: tuple[str, ...] = ()
    part: str = ""  # the option that says which part is meant; `--target` is another spelling of it
    figures: str = ""  # place of a function (part) → an object of figures with their `sources`: what is known of it
    environment: str = ""  # name of the one whose programs it starts; `--tool` says where they are
    levels: Levels | None = None  # None: USUAL_SECTIONS are printed


class Entry(NamedTuple):
    """Something that a backend of the plug-in profiles a model for: `--target NAME`, beside target files.

    Entries of one name, and a target file of that name, are one entry of the catalogue with several sources.
    """

    name: str  # lower case, words with dashes between them
    title: str
    backend: str
    tells: tuple[Provenance, ...]  # how its numbers are obtained, that of times first
    part: str = ""  # value of the backend's option for parts
    aliases: tuple[str, ...] = ()  # its other names
    spellings: tuple[str, ...] = ()  # further ways to write them, which lists do not show
    group: str = ""  # heading in lists; empty: the title of the plug-in
    is_minor: bool = False  # left out of the short list


class InterpreterEntry(NamedTuple):
    """Software on a chip that runs model files: a target's `[runtime]` names it with the key `interpreter`."""

    name: str
    place: str  # of an object with `examine(graph, runtime)`, as estimate.interpreters has it


class RewriteEntry(NamedTuple):
    """A change to a model that leaves what it computes as it was; `opscope optimize` tries it."""

    name: str  # words with dashes between them, such as split-packed-qkv
    help: str  # one line: what is put in place of what
    place: str  # of a rule, as the folder of its format in `rewrites` has it
    format: str = "onnx"
    needs: str = ""  # the word of `--allow` without which it is not tried: approximate, quantize; empty: it is exact


class Verb(NamedTuple):
    """A verb of the command line."""

    name: str
    help: str
    place: str = ""  # of a module with a table COMMANDS: verb → command
    same_as: str = ""  # instead: a verb of opscope's own, under another name


class Example(NamedTuple):
    """A line for the help of a verb of opscope's own, such as `opscope profile model.onnx --backend NAME`."""

    verb: str
    line: str


class Face(NamedTuple):
    """A name that `import opscope` offers."""

    name: str
    place: str


class ReportStyle(NamedTuple):
    """Another way to count and print a report: `opscope report --compat NAME`."""

    name: str
    place: str  # of an object with `report(graph, machine, sha256=…)` and `render(report, out)`


class SummaryFile(NamedTuple):
    """A file that is made of a profile on demand: an option `--NAME FORM` of `opscope profile`."""

    name: str
    help: str
    forms: tuple[str, ...]
    place: str  # of a function (profile, form) → bytes


class TraceWords(NamedTuple):
    """How timelines of its runs call what they say of a span, where the vendor's own traces have words for it.

    Attributes of a command and what was counted of it have such names already; attributes are lines of NAME=VALUE.
    """

    category: str
    ordinal: str  # the place of a command on its thread, which every span says
    arguments: tuple[tuple[str, str], ...]  # name of an argument in our timelines → here; one without is left out


class Manifest(NamedTuple):
    """Everything that one plug-in adds."""

    name: str
    title: str
    package: str  # that relative places start from: `__package__` of the module that holds the manifest
    order: int = 100  # place among the plug-ins, in lists and when files are offered; equal ones by name
    targets: str | PathLike[str] = ""  # folder of TOML files, from the plug-in's package
    entries: tuple[Entry, ...] | str = ()  # what its backends profile for, or the place of such a tuple
    formats: tuple[Format, ...] = ()
    hints: tuple[Hint, ...] = ()
    environments: tuple[Environment, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    backends: tuple[BackendEntry, ...] = ()
    interpreters: tuple[InterpreterEntry, ...] = ()
    rewrites: tuple[RewriteEntry, ...] = ()
    verbs: tuple[Verb, ...] = ()
    faces: tuple[Face, ...] = ()
    report_styles: tuple[ReportStyle, ...] = ()
    summary_files: tuple[SummaryFile, ...] = ()
    examples: tuple[Example, ...] = ()
    trace_words: TraceWords | None = None  # for timelines of what its backends and importers make
    sampler: str = ""  # place of `sampled(log, device=0)`, a context in which a device's power is logged (power-log)

    def names(self) -> set[str]:
        """Every name that no other plug-in may have, with its kind before it."""
        return {
            f"plug-in {self.name}",
            *(f"format {form.name}" for form in self.formats),
            *(f"environment {made.name}" for made in self.environments),
            *(f"backend {backend.name}" for backend in self.backends),
            *(f"interpreter {entry.name}" for entry in self.interpreters),
            *(f"rewrite {entry.name}" for entry in self.rewrites),
            *(f"verb {verb.name}" for verb in self.verbs),
            *(f"face {face.name}" for face in self.faces),
            *(f"report style {style.name}" for style in self.report_styles),
            *(f"summary file {file.name}" for file in self.summary_files),
        }

    def mistakes(self) -> Iterator[str]:
        """What its writer got wrong."""
        signs = [(f"format {form.name}", form.signatures) for form in self.formats]
        for what, signatures in (*signs, *((f"hint on {hint.what}", hint.signatures) for hint in self.hints)):
            if not signatures or Signature() in signatures:
                yield f"{what}: a signature that says nothing would fit every file"
        for backend in self.backends:
            if bool(backend.what_if) != bool(backend.can & {Can.ADVISE, Can.WHAT_IF}):
                yield f"backend {backend.name}: a what-if needs its place, and a place the capability"
            if backend.environment and "tool" in {option.name for option in backend.options}:
                yield f"backend {backend.name}: option tool is every backend's that has an environment"
            if backend.part and backend.part not in {option.name for option in backend.options}:
                yield f"backend {backend.name}: part {backend.part} is not one of its options"
            if backend.levels and (backend.levels.option, backend.levels.words) not in {
                (option.name, frozenset(option.choices)) for option in backend.options
            }:
                yield f"backend {backend.name}: levels of {backend.levels.option} are not for all values of an option"
        for verb in self.verbs:
            if bool(verb.place) == bool(verb.same_as):
                yield f"verb {verb.name}: expected a place, or the verb that it is the same as"
