"""Columns of lines against `str.split`, and pairs of events against a walk from the first row to the last."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.columns import places, rising
from opscope.importers.column_trace import Clock, open_length
from opscope.importers.line_columns import Counter, TextBlock, Texts, read_lines, unwrapped
from opscope.plugins.torq.importers.event_pairs import Events, Pairing

words = st.text(st.sampled_from('ab"(), 1-'), max_size=8)
lines_of = st.lists(
    st.lists(words, min_size=4, max_size=7).map(",".join).filter(lambda line: line.strip()), max_size=20
)


@given(lines_of, st.integers(16, 64), st.booleans())
def test_fields_are_those_of_split_whatever_the_blocks(lines: list[str], block: int, ended: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        path.write_text("\n".join(lines) + ("\n" if ended else ""))
        found: list[tuple[str, str, str, str]] = []
        numbers: list[int] = []
        known = Texts()
        for part in (read.lines() for read in read_lines(path, b",", block_bytes=block)):
            columns = [part.left(0), part.left(1), part.rest(2, 1), part.right(0)]
            texts = [[known.texts[n] for n in known.number(column).tolist()] for column in columns]
            found += list(zip(*texts, strict=True))
            numbers += part.number.tolist()
        rows = [line.split(",") for line in lines]
        assert found == [(row[0], row[1], ",".join(row[2:-1]), row[-1]) for row in rows]
        assert numbers == list(range(1, len(lines) + 1))


@given(st.lists(st.text(st.sampled_from("0123456789-x "), max_size=21), min_size=1, max_size=20))
def test_numbers_are_those_of_int(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        path.write_text("".join(f"{text};\n" for text in texts))
        values, good = next(read_lines(path, b";")).lines().left(0).whole()
    for text, value, fine in zip(texts, values.tolist(), good.tolist(), strict=True):
        digits = text.removeprefix("-")
        assert fine == (digits.isdecimal() and len(digits) <= 18)
        assert value == (int(text) if fine else 0)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=30), st.booleans(), st.integers(0, 30))
def test_a_counter_of_32_bits_is_put_right_also_in_parts(steps: list[int], signed: bool, cut: int) -> None:
    true = np.cumsum(np.array(steps, np.int64))
    held = true & 0xFFFFFFFF
    if signed:
        held = np.where(held >= 2**31, held - 2**32, held)
    assert unwrapped(held).tolist() == true.tolist()
    counter = Counter()
    assert [counter.unwrapped(part).tolist() for part in np.split(held, [cut])] == [
        part.tolist() for part in np.split(true, [cut])
    ]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 1), st.integers(0, 1), st.booleans()), max_size=40),
    st.lists(st.integers(0, 40), max_size=6),
)
def test_pairs_are_those_of_a_walk_however_the_events_come(
    told: list[tuple[int, int, int, bool]], cuts: list[int]
) -> None:
    begun: dict[tuple[int, ...], int] = {}
    pairs, lone, stray = [], [], []
    for row, (*owner, begins) in enumerate(told):
        if begins:
            if tuple(owner) in begun:
                lone.append(begun[tuple(owner)])
            begun[tuple(owner)] = row
        elif tuple(owner) in begun:
            pairs.append((begun.pop(tuple(owner)), row))
        else:
            stray.append(row)
    lone += begun.values()
    rows = np.arange(len(told))
    invocation, action, kind, starts = (np.array([row[i] for row in told], np.int64) for i in range(4))
    events = Events(rows * 0, invocation, action, kind, rows * 0, rows, 100 + rows, starts > 0)
    pairing = Pairing()
    for low, high in pairwise([0, *sorted(cuts), 40]):
        pairing.add(events.at(rows[low:high]))
    found = pairing.finish()
    assert list(zip(found.begin.line.tolist(), (found.end - 100).tolist(), strict=True)) == sorted(pairs)
    assert (found.lone.line.tolist(), found.stray.line.tolist()) == (sorted(lone), stray)
    last = {owner: max(100 + n for n, row in enumerate(told) if row[0] == owner) for owner in {row[0] for row in told}}
    all_rows, ends, ended = found.rows()
    ends_of = dict(pairs)
    assert all_rows.line.tolist() == sorted([*ends_of, *lone])
    assert ended.tolist() == [row in ends_of for row in all_rows.line.tolist()]
    assert ends.tolist() == [100 + ends_of[n] if n in ends_of else last[told[n][0]] for n in all_rows.line.tolist()]


@given(st.lists(st.integers(0, 2**62), max_size=40))
def test_order_and_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    column = np.array(values, np.int64)
    assert rising(column).tolist() == np.argsort(column, kind="stable").tolist()
    found, place = places(column)
    assert found.tolist() == sorted(set(values))
    assert found[place].tolist() == values


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 10)), max_size=20))
def test_open_length_counts_moments_once(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    found = open_length(table[:, 0], table[:, 1], table[:, 1] + table[:, 2], 3)
    assert found.tolist() == [
        len({moment for owner, start, length in rows if owner == key for moment in range(start, start + length)})
        for key in range(3)
    ]


@given(st.integers(0, 2**50), st.sampled_from([800_000_000, 100_000_000, 1_000_000_000, 19_200_000, 333_333_333]))
def test_cycles_become_the_nearest_nanosecond(cycles: int, hz: int) -> None:
    found = int(Clock(hz).ns(np.array([cycles]))[0])
    assert abs(found * hz - cycles * 10**9) * 2 <= hz


ints = st.integers(-(10**17), 10**17).map(str)
any_row = st.one_of(
    st.tuples(ints, ints, st.text(st.sampled_from('ab"( '), max_size=5)).map(";".join), lines_of.map("".join)
)


@given(st.lists(any_row.filter(lambda row: row.strip() and "\n" not in row), min_size=1, max_size=12))
def test_the_quick_way_reads_what_the_slow_way_reads_or_nothing(rows: list[str]) -> None:
    block = TextBlock("".join(f"{row}\n" for row in rows).encode(), b";", 1, len(rows))
    found = block.quick("nnw")
    fits = all(row.count(";") == 2 and _whole(row.split(";")[0]) and _whole(row.split(";")[1]) for row in rows)
    if found is None:
        assert not fits
        return
    known = Texts()
    assert [int(value) for value in found[0]] == [int(row.split(";")[0]) for row in rows]
    codes = known.merged(found[2])  # type: ignore[arg-type]
    assert [known.texts[code] for code in codes.tolist()] == [row.split(";")[2] for row in rows]


def _whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
