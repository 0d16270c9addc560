"""Whatever an editor, a shell or a spreadsheet makes of a file, its rows stay the same."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from opscope.importers.formats import read_profile
from support.plugins.torq_samples import FUSED, spans

PLACE = 'loc("fc.mlir":5:10)'
H12 = "actionIndex, elapsed_time(us), timestamp(us), event, location\n"
FILES = {
    "torq-compile-a": f"DI0,0,160,{PLACE},DMA_IN\nS0,160,845,{FUSED},fully_connected\nDO1,845,849,{FUSED},DMA_OUT\n",
    "torq-compile-b": f"DI0,0,160,{PLACE},DMA_IN,1280\nS0_1,160,845,{FUSED},fully_connected\n",
    "torq-compile-c": "taskId, elapsed_time(us), timestamp(us), event, location, bytes\n"
    f"0,270,0,DMA In,{PLACE},1280\n1,525,270,Slice 0,{FUSED},\n",
    "torq-runtime": f"id;time_since_open;time_since_start;location\n0;1523;402;{PLACE}\n1;2101;377;{FUSED}\n",
    "torq-host-h1": f"{H12}0,0,1000,HOST_COPY_START,{FUSED}\n0,3,1003,HOST_COPY_END,{FUSED}\n",
    "torq-host-h2": f'{H12}0,0,1000,HOST_COPY_START,"{FUSED}"\n0,3,1003,HOST_COPY_END,"{FUSED}"\n',
    "torq-host": "dispatch_name,invocation_id,action_id,timestamp_us,event\n"
    "main,0,0,1000,NSS_START_BEGIN\nmain,0,0,1002,NSS_START_END\n"
    "main,0,1,1002,NSS_WAIT_BEGIN\nmain,0,1,1090,NSS_WAIT_END\n",
}
SAVED: dict[str, Callable[[str], bytes]] = {
    "with a mark": lambda text: text.encode("utf-8-sig"),
    "with two ends of line": lambda text: text.replace("\n", "\r\n").encode(),
    "with the other end of line": lambda text: text.replace("\n", "\r").encode(),
    "as UTF-16": lambda text: text.encode("utf-16"),
    "as UTF-16, big end first": lambda text: b"\xfe\xff" + text.replace("\n", "\r\n").encode("utf-16-be"),
    "without its last end of line": lambda text: text.rstrip("\n").encode(),
    "with empty lines": lambda text: text.replace("\n", "\n\n").encode(),
    "packed": lambda text: gzip.compress(text.encode("utf-16")),
}


@pytest.mark.parametrize("saved", SAVED)
@pytest.mark.parametrize("form", FILES)
def test_a_file_has_the_same_rows_however_it_was_saved(form: str, saved: str, tmp_path: Path) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_text(FILES[form])
    other.write_bytes(SAVED[saved](FILES[form]))
    wanted, found = read_profile(plain), read_profile(other)
    assert wanted.maker == form
    assert len(wanted.trace.spans)
    assert (found.maker, spans(found), found.ops, found.notes) == (form, spans(wanted), wanted.ops, wanted.notes)
