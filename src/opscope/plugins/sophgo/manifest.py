"""Sophgo's chips through the vendor's compiler, tpu-mlir, and the files that it writes."""

from __future__ import annotations

from ...core.converting_options import DATA_HELP, PRECISION_HELP
from ...core.manifest import BackendEntry, Entry, Environment, Example, Format, Manifest, Option, Signature
from ...core.provenance import Provenance

PROFILE, FINAL_MLIR, PLACEMENTS = "sophgo-profile", "sophgo-mlir", "sophgo-placements"
_TIMED = (  # chips of whose times the compiler has a model
    "bm1684x",
    "bm1684x2",
    "bm1688",
    "bm1690",
    "bm1690e",
    "cv184x",
    "cv186x",
    "sg2262",
    "sg2380",
    "sgtpuv8",
)
CHIP_NAMES = (*_TIMED, "bm1684", "cv180x", "cv181x", "cv182x", "cv183x")
DEFAULT_CHIP = "bm1684x"
PRECISIONS = ("f32", "f16", "bf16", "w8a8", "i8", "w4a4", "i4", "w8f16", "w4f16", "w8bf16", "w4bf16")

ENVIRONMENT = Environment(
    name="sophgo",
    title="Sophgo's compiler tpu-mlir",
    programs=("model_transform", "model_deploy", "run_calibration", "model_tool", "tpuc-opt"),
    packages=(
        "tpu-mlir==1.30.2",
        "numpy==1.24.3",
        "protobuf==3.20.3",
        "onnx==1.14.1",
        "onnxruntime==1.16.3",
        "onnxsim==0.4.17",
        "flatbuffers==24.12.23",
        "scipy==1.11.1",
        "tqdm==4.65.0",
        "Pillow==10.0.0",
        "filelock==3.20.0",
        "packaging==25.0",
        "psutil==7.1.3",
        "rich==14.2.0",
        "setuptools==65.5.0",
    ),
    with_dependencies=False,  # which would bring torch and more, of which compiling ONNX uses nothing
    licence="BSD-2-Clause",
    megabytes=970,
    python="3.10",
    systems=("linux-x86_64",),
    finish=".environment:finish",
    version_words=("--version",),
)
BACKEND = BackendEntry(
    name="sophgo",
    title="Sophgo TPUs through the vendor's compiler, tpu-mlir",
    place=".backend:SophgoBackend",
    models=("onnx",),
    part="chip",
    figures=".chips:figures_of",
    environment=ENVIRONMENT.name,
    options=(
        Option("chip", f"chip to compile for (default {DEFAULT_CHIP})", CHIP_NAMES, DEFAULT_CHIP),
        Option(
            "precision",
            PRECISION_HELP,
            PRECISIONS,
            differs="sophgo: default f16, or w8a8 where there is none",
        ),
        Option("num-core", "cores that share an inference (default 1)", is_number=True, metavar="N"),
        Option("data", DATA_HELP, metavar="DIR|F.npz"),
    ),
)


def _entry(chip: str) -> Entry:
    tells = (Provenance.VENDOR_MODEL, Provenance.COMPILER_FACT) if chip in _TIMED else (Provenance.COMPILER_FACT,)
    return Entry(chip, f"Sophgo {chip.upper()}", BACKEND.name, tells, part=chip, spellings=(f"sophgo-{chip}",))


MANIFEST = Manifest(
    name="sophgo",
    title="Sophgo TPUs",
    package=__package__,
    order=75,
    environments=(ENVIRONMENT,),
    backends=(BACKEND,),
    entries=tuple(_entry(chip) for chip in CHIP_NAMES),
    examples=(Example("profile", "opscope profile model.onnx --target bm1688 --precision i8"),),
    formats=(
        Format(
            PROFILE,
            "tpu-mlir schedule of a core (compiler_profile_N.txt), of all cores together; with the two below, by op",
            (Signature(rb"\s*-{3,}\s*\n\s*s: start time, b: bd_id"),),
            ".importer:SophgoProfile",
            with_formats=(PROFILE, FINAL_MLIR, PLACEMENTS),
        ),
        Format(
            FINAL_MLIR,
            "tpu-mlir final.mlir: what was compiled and where it lies, no times",
            (Signature(contains=(b"module.chip", b"tpu<run_mode")), Signature(contains=(b"module.chip", b'"tpu.'))),
            ".importer:FINAL",
        ),
        Format(
            PLACEMENTS,
            "tpu-mlir table of placements (NAME.bmodel.json, tensor_location.json): ops and tensors, no times",
            (Signature(rb"\s*\[\s*\{\s*\"file-line\"", contains=(b'"tpu.',)),),
            ".importer:TABLE",
        ),
    ),
)
