"""The table of docs/trust.md: published results on hardware, what opscope says, and whether they are in its range.

`pytest tests/integration/test_published_results.py -m '' --update-golden` writes the table again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from opscope import api
from opscope.core.units import format_seconds
from opscope.zoo import Recipe, make

PAGE = Path(__file__).parents[2] / "docs" / "trust.md"
BERT_LARGE = {"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096}


@dataclass(frozen=True, slots=True)
class Published:
    """One network on one piece of hardware, as others measured it."""

    network: str
    hardware: str
    recipe: Recipe
    target: str
    milliseconds: tuple[float, ...]  # of every system, least first
    about: str  # what the published figure is
    options: Mapping[str, int] = field(default_factory=dict)  # of the profile
    origin: str = "no"  # whether figures of the target come from the same run


SYSTEM = "whole system, 90th percentile"
BOARD = "whole inference, median"
RESNET = Recipe("resnet50", precision="int8", weights=False)
LARGE = Recipe("bert-base", precision="int8", sequence=384, weights=False, options=BERT_LARGE)

# MLPerf Inference v3.0 and v4.0, closed, SingleStream: Qualcomm, HPE, Dell, Lenovo, Krai
# (mlcommons/inference_results_v3.0, _v4.0), without r282_z93_q5e, whose clock is lowered.
# MLPerf Tiny v0.7 to v1.3, closed, performance, NUCLEO-L4R5ZI: STMicroelectronics, Plumerai, Bosch, Krai, cTuning,
# Skymizer (mlcommons/tiny_results_v0.7 … v1.3). BERT-base: quic/cloud-ai-sdk, Profiler tutorial, mean of ExecTimeUs.
ROWS = {
    "bert-base": Published(
        "BERT-base f16, batch 8, 128 tokens",
        "AIC 100 Standard, 2 cores",
        Recipe("bert-base", precision="f16", batch=8, sequence=128, weights=False),
        "aic100-std",
        (22.861,),
        "device time, mean",
        {"cores": 2},
        "**yes**, most of them",
    ),
    "resnet50-std": Published(
        "ResNet-50 int8, batch 1",
        "AIC 100 Standard, 14 cores",
        RESNET,
        "aic100-std",
        (0.3358, 0.4113),
        SYSTEM,
    ),
    "resnet50-pro": Published(
        "ResNet-50 int8, batch 1",
        "AIC 100 Pro, 16 cores",
        RESNET,
        "aic100-pro",
        (0.4068, 0.4085, 0.4086, 0.4096),
        SYSTEM,
    ),
    "resnet50-ultra": Published(
        "ResNet-50 int8, batch 1",
        "AIC 100 Ultra, 16 cores of one device",
        RESNET,
        "aic100-ultra",
        (0.5808, 0.5940),
        SYSTEM,
    ),
    "bert-large-std": Published(
        "BERT-large int8, batch 1, 384 tokens",
        "AIC 100 Standard, 14 cores",
        LARGE,
        "aic100-std",
        (7.518, 7.545, 7.547),
        f"{SYSTEM}; mixed precision",
    ),
    "bert-large-pro": Published(
        "BERT-large int8, batch 1, 384 tokens",
        "AIC 100 Pro, 16 cores",
        LARGE,
        "aic100-pro",
        (6.809, 7.618, 7.821, 7.916),
        f"{SYSTEM}; mixed precision",
    ),
    "bert-large-ultra": Published(
        "BERT-large int8, batch 1, 384 tokens",
        "AIC 100 Ultra, 16 cores of one device",
        LARGE,
        "aic100-ultra",
        (8.695, 8.696),
        f"{SYSTEM}; mixed precision",
    ),
    "kws": Published(
        "DS-CNN int8 (keyword spotting)",
        "Cortex-M4, 120 MHz, of another maker",
        Recipe("kws-cnn", format="tflite", precision="int8"),
        "max32690-cm4",
        (
            43.19,
            43.42,
            47.78,
            60.16,
            62.68,
            62.87,
            71.66,
            72.68,
            74.73,
            75.06,
            82.00,
            93.64,
            97.65,
            99.81,
            99.84,
            144.03,
            144.03,
        ),
        BOARD,
    ),
    "ic": Published(
        "ResNet-8 int8 (CIFAR-10)",
        "Cortex-M4, 120 MHz, of another maker",
        Recipe("cifar-resnet", format="tflite", precision="int8"),
        "max32690-cm4",
        (
            165.13,
            165.67,
            167.76,
            173.16,
            179.02,
            180.54,
            214.00,
            221.98,
            226.91,
            226.91,
            252.78,
            296.56,
            298.69,
            389.11,
            389.11,
            389.56,
            389.56,
        ),
        BOARD,
    ),
}


def line_of(row: Published, folder: Path) -> str:
    """The row of the table, as it comes out today."""
    model = folder / f"model.{row.recipe.format}"
    make(row.recipe, model)
    run = api.profile(model, row.target, options=dict(row.options)).run
    latency = run.summary.latency
    ours = latency.known_ns / 1e6
    low, high = (latency.low_ns or 0) / 1e6, (latency.high_ns or 0) / 1e6
    has_range = 0 < low < high
    inside = sum(low <= value <= high for value in row.milliseconds)
    least, most = row.milliseconds[0], row.milliseconds[-1]
    cells = (
        row.network,
        row.hardware,
        f"{_ms(least, most)} ({row.about})",
        f"{format_seconds(ours / 1e3)} ({run.info.provenance})",
        _ms(low, high) if has_range else "none",
        f"{ours / most:.2f} – {ours / least:.2f}" if least < most else f"{ours / least:.2f}",
        f"{inside} of {len(row.milliseconds)}" if has_range else f"— of {len(row.milliseconds)}",
        row.origin,
    )
    return f"| {' | '.join(cells)} |"


def _ms(low: float, high: float) -> str:
    one, other = format_seconds(low / 1e3), format_seconds(high / 1e3)
    return one if one == other else f"{one} – {other}"


def check(name: str, folder: Path, request: pytest.FixtureRequest) -> None:
    row = ROWS[name]
    line = line_of(row, folder)
    start = f"| {row.network} | {row.hardware} |"
    if request.config.getoption("--update-golden"):
        kept = [line if old.startswith(start) else old for old in PAGE.read_text(encoding="utf-8").splitlines()]
        PAGE.write_text("\n".join(kept) + "\n", encoding="utf-8", newline="\n")
    assert line in PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", ["bert-base", "resnet50-std", "resnet50-pro", "resnet50-ultra", "kws", "ic"])
def test_the_page_says_what_comes_out(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    check(name, tmp_path, request)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert-large-std", "bert-large-pro", "bert-large-ultra"])
def test_the_page_says_what_comes_out_of_large_models(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    check(name, tmp_path, request)


def test_the_page_says_how_far_throughput_is_off(tmp_path: Path) -> None:
    make(RESNET, tmp_path / "model.onnx")
    api.compile_model(tmp_path / "model.onnx", "aic100-std", tmp_path / "build", cores=1, batch=8)
    found = api.run(tmp_path / "build", activations=14, num_iter=60, set_size=4, out_dir=tmp_path)
    rounded = round(found.statistics.inferences_per_s, -2)
    assert f"comes out at\n  {rounded:,.0f} images per second" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_says_what_the_large_transformer_takes_in_f16(tmp_path: Path) -> None:
    make(replace(LARGE, precision="f16"), tmp_path / "model.onnx")
    latency = api.profile(tmp_path / "model.onnx", "aic100-std").run.summary.latency
    assert f"comes out at {format_seconds(latency.known_ns / 1e9)} on the Standard card" in PAGE.read_text(
        encoding="utf-8"
    )


def test_the_page_counts_its_own_table(request: pytest.FixtureRequest) -> None:
    """How many published results are in the range, without those that the figures come from."""
    text = PAGE.read_text(encoding="utf-8")
    rows = {
        name: next(
            line.split(" | ") for line in text.splitlines() if line.startswith(f"| {row.network} | {row.hardware} |")
        )
        for name, row in ROWS.items()
    }
    judged = [rows[name][6] for name, row in ROWS.items() if row.origin == "no" and not rows[name][6].startswith("—")]
    inside, all_of_them = (sum(int(cell.split(" of ")[place]) for cell in judged) for place in (0, 1))
    words = f"**{inside} of {all_of_them}** published results"
    if request.config.getoption("--update-golden"):
        text = re.sub(r"\*\*\d+ of \d+\*\* published results", words, text)
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    assert words in text
