"""What commands, routes, lanes and operands mean: closed vocabularies, stored in columns.

Display names are for people. Every stage decides by these; words are read by `core/words.py` alone, once, where a
foreign file or an old run has nothing else, and what they tell is marked.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

ROLLUPS = ("op", "type", "module", "layer", "block", "engine", "location")  # what ops can be added up by
COMPARED_BY = ROLLUPS[:-1]  # the same for differences of runs, in which a line of code may have moved
ALLOWABLE = ("target", "provenance", "model", "batch")  # differences of runs that a user may insist on comparing


class Does(IntEnum):
    """What a command, a span or an op does with its time. Never COMPUTE by default."""

    UNKNOWN = 0
    COMPUTE = 1  # arithmetic of the network
    LAYOUT = 2  # changes the form of data: order, type, packing, padding, view
    MOVE = 3  # brings bytes from one place to another: its route says where
    LAUNCH = 4  # starts other work
    SYNC = 5  # waits for other work
    STATS = 6  # writes the recording itself out: no work of the network
    HOST = 7  # a call or a stage of the host
    MIXED = 8  # several of these in one, which the source does not tell apart

    @property
    def label(self) -> str:
        return self.name.lower()


class Carries(StrEnum):
    """What a route is for."""

    READ = "read"  # outer memory → local
    WRITE = "write"  # local → outer memory
    MULTICAST = "multicast"  # core → cores
    LINK = "link"  # device → device
    BRING = "bring"  # local → an engine's own memory
    FETCH = "fetch"  # from there → local
    HOST = "host"  # host ↔ device
    COPY = "copy"  # outer memory → outer memory: its bytes count twice, read and written
    UNKNOWN = "unknown"

    @property
    def is_outer(self) -> bool:
        """Goes to or from outer memory."""
        return self in (Carries.READ, Carries.WRITE, Carries.COPY)


class LaneRole(StrEnum):
    """What a row of a timeline shows."""

    ENGINE = "engine"  # a thread group at work
    THREAD = "thread"  # one thread of a group: its owner
    TRANSFER = "transfer"  # bytes in flight
    EXECUTION = "execution"  # when an inference starts and ends
    HOST = "host"
    NESTED = "nested"  # calls inside those of the owner
    MARKER = "marker"  # says something about other lanes; in no total
    UNKNOWN = "unknown"


class Party(StrEnum):
    """Whose time a stage of an inference is, as system profiles group them."""

    APPLICATION = "application"
    RUNTIME = "runtime"
    DRIVER = "driver"
    QUEUE = "queue"  # behind inferences that came before
    DEVICE = "device"
    UNKNOWN = "unknown"

    @property
    def is_device(self) -> bool:
        """At work, or busy with others: nothing that the host could do less of."""
        return self in (Party.QUEUE, Party.DEVICE)


class Direction(StrEnum):
    """Which way an operand goes, seen from the command."""

    IN = "in"
    OUT = "out"
