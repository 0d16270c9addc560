"""What a stretch of work counts as – compute, memory, link, layout, launch, host, wait – told by its words."""

from __future__ import annotations

import re

from ..recording.finding import BOUNDS, OTHER_BOUND

CAUSES = (*BOUNDS, OTHER_BOUND)
COMPUTE, MEMORY, LINK, WAIT, LAYOUT, LAUNCH, HOST, OTHER = range(len(CAUSES))
DEVICE = "device"  # the stage of an inference that is not the host's
MOST_READ = 120  # characters of a name: what it does stands at its head

_LAYOUT = re.compile(
    r"transpose|permute|convert|\bcast|_cast|reformat|reorder|relayout|tolayout|swizzle|im2col|(de|re)?quanti[sz]e"
    r"|nchw.?to|nhwc.?to|to.?nchw|to.?nhwc|^copy|copy_|\bcopy\b|slice_pad|depth.?to.?space|space.?to.?depth"
    r"|flat_(to|from)|crouton|^pack|unpack",
)
_LAYOUT_NOT = re.compile(r"fused|conv(olution)?_?(2d|d32)?$")
_LAUNCH = re.compile(r"semaphore|dma_start|_start\b|endcyclestats|end_of_stats|multicast\w*_in$|enqueue")
_WAIT = re.compile(r"synchroni[sz]e|^sync\b|\bbarrier\b|^wait|\bwait\b")
_LINK = re.compile(r"htod|dtoh|ptop|p2p|multicast|all.?reduce|all.?gather|nccl|peer")
_OUTER = re.compile(r"\b(read|write)\b")
_DMA_LANE = re.compile(r"(^|\W)dma($|\W)")
_TRANSFER = re.compile(r"^(in|out)put transfer")  # stages of an inference, of host.STAGES
_QUEUE = re.compile(r"^device queue")
_CPU = re.compile(r"^(cpu|host)|cpuexecutionprovider|\bcpu\b")
_FLUSH = re.compile(r"endcyclestats|end_of_stats")


def cause_of_work(name: str) -> int:
    """Of an engine at work, by the name of what it does."""
    word = name[:MOST_READ].lower()
    if _LAUNCH.search(word):
        return LAUNCH
    if _WAIT.search(word):
        return WAIT
    return LAYOUT if is_layout(word) else COMPUTE


def cause_of_transfer(name: str) -> int:
    """Of bytes in flight, by the name of the route or of the copy."""
    word = name[:MOST_READ].lower()
    return LINK if _LINK.search(word) and not _OUTER.search(word) else MEMORY


def cause_of_host(name: str) -> int:
    """Of a call or a stage on the host."""
    word = name[:MOST_READ].lower()
    if _TRANSFER.search(word):
        return LINK
    return WAIT if _WAIT.search(word) or _QUEUE.search(word) else HOST


def is_layout(name: str) -> bool:
    """Changes the form of data only: layout, type, place."""
    word = name[:MOST_READ].lower()
    return bool(_LAYOUT.search(word)) and not _LAYOUT_NOT.search(word)


def is_dma_lane(name: str) -> bool:
    return bool(_DMA_LANE.search(name.lower()))


def is_dma_engine(name: str) -> bool:
    """Moves bytes, or sends them off and has their time in its totals."""
    return is_dma_lane(name) or name.lower().startswith("dma")


def is_cpu(engine: str) -> bool:
    return bool(_CPU.search(engine.lower()))


def is_flush(name: str) -> bool:
    """Writes the recording itself out: no work of the network."""
    return bool(_FLUSH.search(name[:MOST_READ].lower()))


def reads_or_writes(route: str) -> bool:
    """The route goes to outer memory and not to another core or device."""
    return bool(_OUTER.search(route.lower()))
