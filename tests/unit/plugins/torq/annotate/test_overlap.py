from __future__ import annotations

import numpy as np

from opscope.plugins.torq.annotate.overlap import HAL, Busy, Part, UnitClass, shares


def busy(*rows: tuple[int, int]) -> Busy:
    table = np.array(rows, np.int64).reshape(-1, 2)
    return Busy.of(table[:, 0], table[:, 1])


def pairs(found: Busy) -> list[tuple[int, int]]:
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


def test_intervals_that_touch_become_one_and_empty_ones_none() -> None:
    assert pairs(busy((5, 9), (0, 5), (20, 20), (12, 13))) == [(0, 9), (12, 13)]


def test_intervals_that_only_touch_have_nothing_in_common() -> None:
    assert pairs(busy((0, 5)) & busy((5, 9))) == []
    assert pairs(busy((0, 9)) - busy((3, 5))) == [(0, 3), (5, 9)]


def test_the_published_kinds_of_shares_by_hand() -> None:
    found = {
        share.name: (share.time_ns, share.percent)
        for share in shares(
            [
                UnitClass("DMA_IN", Part.MOVE, busy((0, 40)), "DMA"),
                UnitClass("DMA_OUT", Part.MOVE, busy((60, 80)), "DMA"),
                UnitClass("SLICE_0", Part.COMPUTE, busy((30, 70)), "SLICE"),
                UnitClass("HAL", Part.HOST, busy((90, 95)), HAL),
                UnitClass("HOST", Part.HOST, busy((80, 85), (95, 100)), "HOST"),
            ]
        )
    }
    assert found["OVERALL"] == (100, 100.0)
    assert found["DMA"] == (60, 60.0)
    assert found["DMA_ONLY"] == (40, 40.0)
    assert found["COMPUTE_ONLY"] == (20, 20.0)
    assert found["DMA_COMPUTE_OVERLAP"] == (20, 20.0)
    assert found["IDLE"] == (5, 5.0)
    assert found["TOTAL_NPU_OPERATIONS"] == (90, 90.0)  # 0 to 100, less 10 of the host alone


def test_a_window_of_ones_own_is_the_whole() -> None:
    (overall, *_) = shares([UnitClass("CSS", Part.COMPUTE, busy((0, 5)))], window=(0, 50))
    assert (overall.time_ns, overall.percent) == (50, 100.0)
