"""What kernels of HTP do, by their names."""

from __future__ import annotations

import pytest

from opscope.core.meaning import Does
from opscope.plugins.qnn.importers.timeline import DMA, HVX
from opscope.plugins.qnn.kernel_words import does_of


@pytest.mark.parametrize(
    ("kernel", "does"),
    [
        ("ConvLayer.fp16.s1.tcm", Does.COMPUTE),
        ("Softmax_Crouton_smalld", Does.COMPUTE),  # of data in that form
        ("TableLookup", Does.COMPUTE),
        ("linearclip", Does.COMPUTE),
        ("addsub_op", Does.COMPUTE),
        ("ResizeBilinear.fp16.tcm", Does.COMPUTE),
        ("ResizeNear_slice.tcm", Does.LAYOUT),
        ("GatherElements", Does.LAYOUT),
        ("ForceFormat_Crouton", Does.LAYOUT),
        ("DepthwiseConvLayer.opt.to_crouton2x2", Does.LAYOUT),
        ("invscale_to_qi32", Does.LAYOUT),
        ("ConvLayer.opt.weights_to_vtcm", Does.MOVE),
        ("@Spill", Does.MOVE),
        ("frobnicate", Does.UNKNOWN),
    ],
)
def test_a_kernel_does_what_a_word_of_its_name_says(kernel: str, does: Does) -> None:
    assert does_of(kernel, HVX) is does


def test_what_runs_on_the_dma_moves_bytes() -> None:
    assert does_of("frobnicate", DMA) is Does.MOVE
