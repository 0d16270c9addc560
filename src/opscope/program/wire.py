"""Byte layouts of the program file and of the stats buffer. Tables only; docs/formats/ describes every field.

All integers are little-endian. A CRC-32 covers everything behind the header, so that a silent flip is caught.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

import numpy as np

# The program file: header, section table, sections.
PROGRAM_MAGIC = b"OPSCPROG"
PROGRAM_VERSION = 3
PROGRAM_HEADER = Struct("<8sHHIQII")  # magic, version, header bytes, sections, program id, CRC-32 of the rest, 0
PROGRAM_SECTION = Struct("<IIQQ")  # ProgramSection, 0, offset, bytes


class ProgramSection(IntEnum):
    META = 1  # JSON: names, groups, routes, details, metrics
    COMMANDS = 2  # program.COMMAND records
    DEPENDENCY_OFFSETS = 3  # u32
    DEPENDENCY_SOURCES = 4  # u32
    DEPENDENCY_KINDS = 5  # u8


# The stats buffer: header, section table, sections.
STATS_MAGIC = b"OPSCSTAT"
STATS_VERSION = 1
STATS_HEADER = Struct("<8sHHIQHHHHIIIIQQII")
STATS_HEADER_FIELDS = (
    "magic",
    "version",
    "header_bytes",
    "sections",
    "program_id",
    "device",
    "cores",
    "threads",
    "level",
    "flags",
    "activation",
    "inference",
    "batch_size",
    "stats_millihertz",
    "total_bytes",
    "crc32",
    "reserved",
)
STATS_SECTION = Struct("<HHIIIQ")  # StatsSection, core, record bytes, records, 0, offset


class StatsFlag(IntFlag):
    DDR = 1
    PMU = 2
    LOST = 4  # the buffer was too small: the last records of some lane are missing


class StatsSection(IntEnum):
    THREADS = 1
    PORTS = 2
    DOORBELLS = 3
    DDR = 4
    PMU = 5
    OPS = 6
    OP_PMU = 7
    LOST = 8


THREAD_RECORD = np.dtype(
    [
        ("thread", "<u2"),
        ("group", "<u2"),
        ("activate", "<u4"),  # ticks of set-up before the inference
        ("start", "<u8"),  # ticks
        ("end", "<u8"),
        ("pcycles", "<u8"),  # core cycles between them
    ]
)
PORT_RECORD = np.dtype([("thread", "<u2"), ("port", "<u2"), ("wait", "<u4")])  # ticks waited on the port's doorbell
DOORBELL_RECORD = np.dtype([("port", "<u2"), ("reserved", "<u2", (3,)), ("time", "<u8")])
DDR_RECORD = np.dtype([("read_bytes", "<u8"), ("write_bytes", "<u8"), ("ticks", "<u8")])
PMU_RECORD = np.dtype([("thread", "<u2"), ("event", "<u2"), ("reserved", "<u4"), ("value", "<u8")])
OP_RECORD = np.dtype(
    [
        ("ordinal", "<u4"),  # place of the command in its lane
        ("thread", "<u2"),  # of the core
        ("group", "<u2"),
        ("start", "<u8"),  # ticks
        ("ucycles", "<u4"),  # ticks from start to done; of a transfer: until the bytes have arrived
        ("pcycles", "<u4"),  # core cycles the thread worked
        ("wait", "<u4"),  # ticks the thread waited before start: sync
        ("barrier", "<u4"),  # ticks it waited for the other threads of the group afterwards
        ("blocker", "<u4"),  # 1 + command that was waited for last; 0: waited for none
        ("reserved", "<u4"),
    ]
)
OP_PMU_RECORD = np.dtype([("ordinal", "<u4"), ("thread", "<u2"), ("event", "<u2"), ("value", "<u8")])
LOST_RECORD = np.dtype([("thread", "<u2"), ("group", "<u2"), ("first", "<u4"), ("count", "<u8")])

STATS_RECORDS = {
    StatsSection.THREADS: THREAD_RECORD,
    StatsSection.PORTS: PORT_RECORD,
    StatsSection.DOORBELLS: DOORBELL_RECORD,
    StatsSection.DDR: DDR_RECORD,
    StatsSection.PMU: PMU_RECORD,
    StatsSection.OPS: OP_RECORD,
    StatsSection.OP_PMU: OP_PMU_RECORD,
    StatsSection.LOST: LOST_RECORD,
}

INPUT_PORT, OUTPUT_PORT = 100, 101
