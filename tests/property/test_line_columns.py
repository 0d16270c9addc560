"""Columns of lines against `str.split`, and pairs of events against a walk from the first row to the last."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.importers.column_trace import Clock, open_length
from opscope.importers.line_columns import Block, Words, distinct, read_lines, rising, unwrapped
from opscope.importers.torq_host_log import _pairs

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
        known = Words()
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


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=30), st.booleans())
def test_a_counter_of_32_bits_is_put_right(steps: list[int], signed: bool) -> None:
    true = np.cumsum(np.array(steps, np.int64))
    held = true & 0xFFFFFFFF
    if signed:
        held = np.where(held >= 2**31, held - 2**32, held)
    assert unwrapped(held).tolist() == true.tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40))
def test_pairs_are_those_of_a_walk(events: list[tuple[int, bool]]) -> None:
    key = np.array([owner for owner, _ in events], np.int64)
    begins = np.array([begin for _, begin in events], np.bool_)
    begun: dict[int, int] = {}
    pairs, lone, stray = [], [], []
    for row, (owner, begin) in enumerate(events):
        if begin:
            if owner in begun:
                lone.append(begun[owner])
            begun[owner] = row
        elif owner in begun:
            pairs.append((begun.pop(owner), row))
        else:
            stray.append(row)
    lone += begun.values()
    begin_rows, end_rows, lone_rows, stray_rows = _pairs(key, begins)
    assert sorted(zip(begin_rows.tolist(), end_rows.tolist(), strict=True)) == sorted(pairs)
    assert (lone_rows.tolist(), stray_rows.tolist()) == (sorted(lone), stray)


@given(st.lists(st.integers(0, 2**62), max_size=40))
def test_order_and_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    column = np.array(values, np.int64)
    assert rising(column).tolist() == np.argsort(column, kind="stable").tolist()
    found, place = distinct(column)
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
    block = Block("".join(f"{row}\n" for row in rows).encode(), b";", 1)
    found = block.quick("nnw")
    fits = all(row.count(";") == 2 and _whole(row.split(";")[0]) and _whole(row.split(";")[1]) for row in rows)
    if found is None:
        assert not fits
        return
    known = Words()
    assert [int(value) for value in found[0]] == [int(row.split(";")[0]) for row in rows]
    codes = known.merged(found[2])  # type: ignore[arg-type]
    assert [known.texts[code] for code in codes.tolist()] == [row.split(";")[2] for row in rows]


def _whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
