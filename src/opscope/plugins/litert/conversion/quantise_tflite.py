"""Float TFLite → integers by Google's own quantiser of TFLite files (ai-edge-quantizer), with samples of the inputs."""

from __future__ import annotations

from pathlib import Path

from ....backends.process import checked_answer, run_worker
from ....conversion.steps import MOST_SAMPLES, FileToConvert, Made
from ....core.errors import UsageError
from ....core.precisions import precision_of

LONGEST_S = 3600
_WORKER = Path(__file__).with_name("quantiser_worker.py")


def convert(work: FileToConvert) -> Made:
    """Calibrate and quantise in the environment."""
    if work.toolchain is None:
        raise UsageError("ai-edge-quantizer: no environment; expected `opscope setup convert`")
    precision = precision_of(work.makes.precision)
    samples = work.folder / "samples"
    names = work.samples.write(samples, MOST_SAMPLES)
    made = work.folder / "quantised.tflite"
    request: dict[str, object] = {"model": str(work.model.resolve()), "output": str(made), "inputs": names}
    request |= {
        "samples": str(samples),
        "weight_bits": precision.weight_bits,
        "activation_bits": precision.activation_bits,
    }
    answer, ended = run_worker(_WORKER, request, work.folder, longest_s=LONGEST_S, python=work.toolchain.python)
    found = checked_answer(answer, ended, runtime="ai-edge-quantizer", model=work.model)
    notes = [f"{kind} stays float: the quantiser fails on it ({why})" for kind, why in found["failed"]]  # type: ignore[attr-defined]
    return Made(made, str(found["version"]), notes=tuple(notes))
