"""Outer memory in use: parts of cores add up to the tensor and no further, and what is dead makes room."""

from __future__ import annotations

from opscope.compiler.codegen.outer_use import OuterUse


def test_parts_add_up_and_a_tensor_that_every_core_has_whole_lies_there_once() -> None:
    use = OuterUse(devices=1, cores=2)
    use.hold(1, 0, 30.0, whole=100.0)
    use.hold(1, 1, 70.0, whole=100.0)
    assert use.most == [100.0]
    use.hold(2, 0, 50.0, whole=50.0)
    use.hold(2, 1, 50.0, whole=50.0)
    assert use.most == [150.0]


def test_what_is_freed_makes_room_and_the_most_stays() -> None:
    use = OuterUse(devices=1, cores=1)
    use.hold(1, 0, 100.0, whole=100.0)
    use.free(1)
    use.hold(2, 0, 80.0, whole=80.0)
    assert use.most == [100.0]
    use.hold(3, 0, 30.0, whole=30.0)
    assert use.most == [110.0]


def test_each_device_has_its_own() -> None:
    use = OuterUse(devices=2, cores=2)
    use.hold(1, 1, 10.0, whole=40.0)
    use.hold(1, 2, 20.0, whole=40.0)
    assert use.most == [10.0, 20.0]


def test_a_part_that_becomes_another_tensor_is_not_counted_twice() -> None:
    use = OuterUse(devices=1, cores=1)
    use.hold(1, 0, 10.0, whole=10.0)
    use.hold(2, 0, 10.0, whole=10.0)
    use.drop(1, 0)
    use.drop(2, 0)
    use.hold(3, 0, 20.0, whole=20.0)
    assert use.most == [20.0]
    use.drop(9, 0)  # never was there
    assert use.most == [20.0]
