"""Sharding: which part of a tensor, or of an op's work, each lane has; and what lanes send when they need another.

A sharding cuts axes into parts and gives every lane a box. Two cuts form a grid: rows in 2 parts, channels in 3:

    place        0        1        2        3        4        5
    rows       0-1/2    0-1/2    0-1/2   1/2-1    1/2-1    1/2-1       inner = 3: the part changes every 3 places
    channels   0-1/3   1/3-2/3  2/3-1     0-1/3   1/3-2/3  2/3-1       inner = 1

An op that needs its rows and all channels of an input drops the second cut: places 0, 1 and 2 need the same box. Where
windows overlap (convolutions), a lane needs rows beyond its own part as well: the halo.

Everything is a fraction of an axis, so a sharding says nothing about sizes, and layers that are alike share theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats, Numbers

Interval = tuple[float, float]
Box = tuple[tuple[int, float, float], ...]  # axis, from, to; axes that are not cut are left out

REDUCED = -1  # instead of an axis of the output: the one that a product sums over; lanes then have partial sums

_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Cut:
    """One axis, cut into parts of about equal size. Whole units only: of 10 rows, 4 parts have 2, 3, 2 and 3."""

    axis: int
    extent: int  # in units: elements, or tiles of them
    parts: int
    inner: int = 1  # places that have the same part before the next one comes
    before: float = 0.0  # halo: share of the axis that a lane needs beyond its part
    after: float = 0.0

    def interval(self, place: int) -> Interval:
        """The part of a place, with its halo, as fractions of the axis."""
        part = place // self.inner % self.parts
        low, high = part * self.extent // self.parts, (part + 1) * self.extent // self.parts
        if low == high:
            return 0.0, 0.0
        return max(0.0, low / self.extent - self.before), min(1.0, high / self.extent + self.after)

    @property
    def largest(self) -> float:
        """Share of the largest part, without its halo."""
        return -(-self.extent // self.parts) / self.extent


class OnDevice(NamedTuple):
    """What the lanes of one device have, as shares of the whole."""

    lanes: int
    boxes: int  # that differ
    share: float  # of all lanes together
    once: float  # the same; what several of them have counts once


class Sharding:
    """Cuts, and who takes part. Lane number: device × cores of a device + core.

    Equal shardings are one object, made by `sharding`: they are compared and looked up more often than anything else.
    """

    __slots__ = (
        *("_layout", "_made", "_on_first_device"),
        *("boxes", "cores", "cuts", "devices", "largest", "of_cores", "places", "shares"),
    )

    def __init__(
        self, cuts: tuple[Cut, ...], places: int, *, devices: tuple[int, ...], cores: int, of_cores: int
    ) -> None:
        self.cuts = cuts
        self.places = places  # that have a part; without cuts each has everything
        self.devices = devices
        self.cores = cores  # of every device that take part
        self.of_cores = of_cores  # that a device has
        self.largest = prod(cut.largest for cut in cuts)  # share of the lane that has most, without its halo
        self.boxes: dict[int, Box] = {}  # lane → what it has; lanes that have nothing are left out
        for place in range(places):
            device, core = divmod(place, cores)
            box = tuple(sorted((cut.axis, *cut.interval(place)) for cut in cuts))
            if all(high > low for _, low, high in box):
                self.boxes[devices[device] * of_cores + core] = box
        self.shares = {lane: _volume(box) for lane, box in self.boxes.items()}  # halo included
        self._made: Sharding | None = None
        self._layout: _Layout | None = None
        self._on_first_device: OnDevice | None = None

    def lanes(self) -> tuple[int, ...]:
        """Lanes that have something, in the order of places."""
        return tuple(self.boxes)

    def share(self, lane: int) -> float:
        """What a lane has, as a share of the whole."""
        return self.shares.get(lane, 0.0)

    def cut_on(self, axis: int) -> Cut | None:
        return next((cut for cut in self.cuts if cut.axis == axis), None)

    @property
    def made(self) -> Sharding:
        """What lanes have of the result of an op that is split so: partial sums have been added up by then."""
        if self._made is None:
            self._made = self.only(tuple(cut for cut in self.cuts if cut.axis != REDUCED))
        return self._made

    @property
    def layout(self) -> _Layout:
        """What lanes have, however it came about: 768 channels in 8 parts are laid out as 3072 in 8 are."""
        if self._layout is None:
            self._layout = _layout(tuple(self.boxes.items()), self.devices, self.of_cores)
        return self._layout

    @property
    def on_first_device(self) -> OnDevice:
        """What the first of its devices has: prices ask for it again and again."""
        if self._on_first_device is None:
            first = self.devices[0]
            shares = {lane: share for lane, share in self.shares.items() if lane // self.of_cores == first}
            once = {self.boxes[lane]: share for lane, share in shares.items()}
            self._on_first_device = OnDevice(len(shares), len(once), sum(shares.values()), sum(once.values()))
        return self._on_first_device

    def only(self, cuts: tuple[Cut, ...]) -> Sharding:
        """The same lanes with other cuts: those of an operand, say."""
        return self if cuts == self.cuts else sharding(cuts, self.places, self.devices, self.cores, self.of_cores)


@cache
def sharding(cuts: tuple[Cut, ...], places: int, devices: tuple[int, ...], cores: int, of_cores: int) -> Sharding:
    """The one sharding with these cuts."""
    return Sharding(cuts, places, devices=devices, cores=cores, of_cores=of_cores)


def whole(devices: tuple[int, ...], cores: int, of_cores: int) -> Sharding:
    """Everything, on all of these lanes."""
    return sharding((), len(devices) * cores, devices, cores, of_cores)


def _overlap(one: Box, other: Box) -> Box | None:
    """The box that both have; None where they have nothing in common."""
    limits = {axis: (low, high) for axis, low, high in one}
    for axis, low, high in other:
        own = limits.get(axis, (0.0, 1.0))
        limits[axis] = max(own[0], low), min(own[1], high)
    if any(high - low < _CLOSE for low, high in limits.values()):
        return None
    return tuple((axis, *limits[axis]) for axis in sorted(limits))


def _volume(box: Box) -> float:
    return prod(high - low for _, low, high in box)


def _contains(outer: Box, inner: Box) -> bool:
    limits = {axis: (low, high) for axis, low, high in inner}
    for axis, low, high in outer:
        own = limits.get(axis, (0.0, 1.0))
        if own[0] < low - _CLOSE or own[1] > high + _CLOSE:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Exchange:
    """What lanes send each other so that everybody has what it needs; sizes are shares of the tensor."""

    sent: dict[int, float]  # lane → share that it sends within its device; what several lanes need is sent once
    linked: dict[int, float]  # lane → share that it sends to other devices, once to each of them
    sources: dict[int, tuple[int, ...]]  # lane → lanes that it receives from; none: it has all that it needs


@lru_cache(maxsize=16384)
def exchange(held: Sharding, needed: Sharding) -> Exchange:
    """The exchange from one sharding of a tensor to another.

    Of lanes that hold the same box those on the receiver's device send it, and take turns; to another device, one.

    Example: four lanes on two devices. Lanes 0 and 1 have the upper half of the rows, lanes 2 and 3 the lower half, and
    all want both. Who has the other half is on the other device: lane 0 sends the upper half to device 1, once for both
    who want it there, and lane 2 the lower half to device 0.

        sent    none        linked    0: 1/2  2: 1/2        sources    0: 2   1: 2   2: 0   3: 0
    """
    have, want = held.boxes, needed.boxes
    holders: dict[Box, list[int]] = {}
    for lane, box in have.items():
        holders.setdefault(box, []).append(lane)
    cores = held.of_cores
    inside: dict[int, set[Box]] = {}
    across: dict[int, set[tuple[int, Box]]] = {}
    sources: dict[int, tuple[int, ...]] = {}
    for lane, wanted in want.items():
        own = have.get(lane)
        if own is not None and _contains(own, wanted):
            continue
        found = []
        for box, lanes in holders.items():
            common = None if box == own else _overlap(box, wanted)
            if common is None or (own is not None and _contains(own, common)):
                continue
            near = [other for other in lanes if other // cores == lane // cores]
            sender = near[len(sources) % len(near)] if near else lanes[len(sources) % len(lanes)]
            shared = next((s for s in near if common in inside.get(s, ())), sender)
            if near:
                inside.setdefault(shared, set()).add(common)
                found.append(shared)
            else:
                device = lane // cores
                linked = next((s for s in lanes if any(to == device for to, _ in across.get(s, ()))), sender)
                across.setdefault(linked, set()).add((device, common))
                found.append(linked)
        sources[lane] = tuple(found)
    return Exchange(
        {lane: min(_volume(have[lane]), sum(map(_volume, boxes))) for lane, boxes in sorted(inside.items())},
        {lane: _sent_to_devices(have[lane], boxes) for lane, boxes in sorted(across.items())},
        sources,
    )


def keeps_parts(held: Sharding, needed: Sharding) -> bool:
    """Whether every lane goes on needing what it holds: others add to it."""
    return all(lane in needed.boxes and _contains(needed.boxes[lane], box) for lane, box in held.boxes.items())


def _sent_to_devices(own: Box, boxes: set[tuple[int, Box]]) -> float:
    """Share that a lane sends to other devices, to none of them more than it has: halos overlap."""
    sent: dict[int, float] = {}
    for device, box in sorted(boxes):
        sent[device] = min(_volume(own), sent.get(device, 0.0) + _volume(box))
    return sum(sent.values())


# ---- the price of an exchange, without saying who sends what ------------------------------------------------------

_AXES = 8  # of a tensor that may be cut
_ONE_DEVICE = (0,)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Lanes with their boxes. Equal layouts are one object, made by `_layout`."""

    boxes: tuple[tuple[int, Box], ...]  # lane and what it has
    devices: tuple[int, ...]
    of_cores: int

    @property
    def axes(self) -> int:
        """Number of axes up to the last that is cut: behind it all boxes are whole."""
        return 1 + max((axis for _, box in self.boxes[:1] for axis, _, _ in box), default=-1)


@lru_cache(maxsize=4096)
def _layout(boxes: tuple[tuple[int, Box], ...], devices: tuple[int, ...], of_cores: int) -> _Layout:
    return _Layout(boxes, devices, of_cores)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The distinct boxes of a layout, as columns, and the lanes that have each."""

    low: Floats  # box, axis
    high: Floats
    volume: Floats
    lanes: Numbers  # those of the first box, then those of the second …
    first: Numbers  # box → its first lane in `lanes`
    box: Numbers  # lane in `lanes` → its box
    enough: Floats  # lane in `lanes` → volume of its box that it has to hold, to hold all of it
    box_of: Numbers  # lane → its box; -1: none, as of all lanes behind the last one
    home: npt.NDArray[np.bool_]  # box, device: whether a lane of the device has it


@lru_cache(maxsize=4096)
def _groups(found: _Layout, *, by_device: bool) -> _Groups:
    """Lanes put together that have one box; with `by_device`, lanes of each device on their own.

    Example: of four lanes, 0 and 2 have the upper half of the rows, 1 and 3 the lower half:

        low      0.0  0.5         lanes    0  2  1  3        first    0  2
        high     0.5  1.0         box      0  0  1  1        box_of   0  1  0  1  -1
    """
    members: dict[tuple[int, Box], list[int]] = {}
    for lane, box in found.boxes:
        members.setdefault((lane // found.of_cores if by_device else 0, box), []).append(lane)
    low, high = np.zeros((len(members), _AXES)), np.ones((len(members), _AXES))
    home = np.zeros((len(members), max(found.devices) + 1), np.bool_)
    for number, ((_, box), lanes) in enumerate(members.items()):
        home[number, [lane // found.of_cores for lane in lanes]] = True
        for axis, start, end in box:
            low[number, axis], high[number, axis] = start, end
    sizes = [len(lanes) for lanes in members.values()]
    each = np.array([lane for lanes in members.values() for lane in lanes], np.int64)
    volume, boxes = (high - low).prod(axis=1), np.repeat(np.arange(len(sizes)), sizes)
    box_of = np.full(found.of_cores * home.shape[1] + 1, -1)
    box_of[each] = boxes
    return _Groups(
        low,
        high,
        volume,
        each,
        np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64),
        boxes,
        volume[boxes] - _CLOSE,
        box_of,
        home,
    )


@dataclass(frozen=True, slots=True)
class Moved:
    """What an exchange moves, as shares of the tensor."""

    bus: float = 0.0  # over the bus of the device that moves most
    sender: float = 0.0  # by the lanes that hold one box, of the box that is sent most
    link: float = 0.0  # to other devices, by the device that sends most

    def __bool__(self) -> bool:
        return self.bus > 0 or self.link > 0


def moved_by_exchange(held: Sharding, needed: Sharding) -> Moved:
    """What `exchange` would move, for whole groups of lanes that have or need the same: there are many to be priced.

    A little more where halos overlap in a part that one lane has, or where several lanes could take turns in sending.
    """
    return _moved(held.layout, needed.layout)


@lru_cache(maxsize=1 << 16)
def _moved(held: _Layout, needed: _Layout) -> Moved:
    """A table of wanted box × held box says how much of the one is in the other; what need not be sent becomes 0.

    Example: two lanes have the rows in halves, and want the columns in halves. Each wanted half shares a quarter of the
    tensor with each held half. A lane has one of its two quarters itself:

        overlap         upper   lower               upper   lower
        left (lane 0)   1/4     1/4          →      0       1/4
        right (lane 1)  1/4     1/4                 1/4     0

    Each held half is sent as much as its column adds up to, and never more than all of it, as one transfer serves all
    who listen: a quarter by each lane, a half over the bus.
    """
    if held is needed:
        return Moved()
    have, want = _groups(held, by_device=False), _groups(needed, by_device=True)
    axes = max(held.axes, needed.axes)
    common = np.minimum(want.high[:, None, :axes], have.high[:, :axes])
    common -= np.maximum(want.low[:, None, :axes], have.low[:, :axes])
    overlap = np.multiply.reduce(np.maximum(common, 0.0, out=common), axis=2)  # wanted box, held box
    overlap[overlap < _CLOSE] = 0.0
    # The number of the held box that each wanting lane has itself: lanes behind the last one that holds have -1.
    own = have.box_of[np.minimum(want.lanes, len(have.box_of) - 1)]
    enough = (own >= 0) & (overlap[want.box, own] > want.enough)
    overlap[np.logical_and.reduceat(enough, want.first)] = 0.0  # everybody who wants it has it
    # Where all who want a box have the same part of it, nobody sends them that part.
    least, most = np.minimum.reduceat(own, want.first), np.maximum.reduceat(own, want.first)
    alike = np.flatnonzero((least == most) & (least >= 0))
    overlap[alike, least[alike]] = 0.0
    if held.devices == needed.devices == _ONE_DEVICE:  # everybody is near, and nothing leaves the device
        alone = np.minimum(np.add.accumulate(overlap)[-1], have.volume)
        return Moved(float(alone.sum()), float(alone.max()))
    return _moved_between_devices(overlap, have, want, devices=1 + max(*held.devices, *needed.devices))


def _moved_between_devices(overlap: Floats, have: _Groups, want: _Groups, *, devices: int) -> Moved:
    """What is moved of so much of each wanted box, that each held box has, within devices and between them."""
    homes = np.zeros((len(have.volume), devices), np.bool_)
    homes[:, : have.home.shape[1]] = have.home
    wanted_on = want.home.argmax(axis=1)
    near = homes[:, wanted_on].T
    bus = np.zeros((homes.shape[1], len(have.volume)))
    np.add.at(bus, wanted_on, overlap * near)
    bus = np.minimum(bus, have.volume)
    far = np.zeros_like(bus)
    np.add.at(far, wanted_on, overlap * ~near)
    link = np.bincount(homes.argmax(axis=1), np.minimum(far, have.volume).sum(axis=0))
    return Moved(float(bus.sum(axis=1).max()), float(bus.max()), float(link.max()))
