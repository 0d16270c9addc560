from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import ImportFileError
from opscope.core.json_files import decode_json
from opscope.importers import reading
from opscope.importers.reading import Unread, number_in, read_blocks, read_bytes, to_ns, whole_in


def test_a_bomb_is_stopped_long_before_it_is_inflated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_SMALL_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(1 << 25)))
    with pytest.raises(ImportFileError, match=r"inflates to more than \d+ bytes; expected a profile"):
        read_bytes(path)


def test_a_cut_gzip_is_an_error_with_a_place(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 10)[:-10])
    with pytest.raises(ImportFileError, match=r"cut\.gz: byte 0x[0-9a-f]+ of the inflated text: damaged gzip"):
        read_bytes(path)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 10)
    path = tmp_path / "long"
    path.write_bytes(bytes(11))
    with pytest.raises(ImportFileError, match="11 bytes; expected at most 10"):
        read_bytes(path)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"a": NaN}', r"invalid character \(byte 6\); expected JSON"),
        (b'{"a": 1', "cut short after 7 bytes; expected JSON"),
        (b'{"a": "x"}', r"Expected `int`, got `str` - at `\$\[...\]`"),
        (b'{"\xff\xfe": 1}', "a name is not valid UTF-8"),
    ],
)
def test_json_that_does_not_fit_says_where(raw: bytes, words: str) -> None:
    with pytest.raises(ImportFileError, match=words):
        decode_json(raw, msgspec.json.Decoder(dict[str, int]), source="x.json")


def test_unknown_fields_of_any_depth_are_bounded() -> None:
    class Narrow(msgspec.Struct):
        a: int = 0

    with pytest.raises(ImportFileError, match="nested too deep"):
        decode_json(b'{"b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", msgspec.json.Decoder(Narrow), source="x.json")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.5", 1234.5),
        (" 7 ", 7.0),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("", None),
        ("x", None),
        ("1e30", None),
    ],
)
def test_numbers_are_finite_or_none(text: str, value: float | None) -> None:
    assert number_in(text) == value


def test_times_are_whole_nanoseconds_or_unknown() -> None:
    assert to_ns(0.0000014, 1e6) == 1
    assert to_ns(-1.0, 1e6) is None
    assert to_ns(1e15, 1e9) is None
    assert to_ns(None, 1e6) is None
    assert whole_in("52,420") == 52420


def test_rows_that_cannot_be_read_are_counted_and_the_first_are_named() -> None:
    unread = Unread("rows")
    assert unread.notes() == ()
    for number in range(7):
        unread.add(f"line {number}", "bad\x07text")
    (note,) = unread.notes()
    assert note.startswith(r"7 rows could not be read: line 0: bad\x07text; line 1")
    assert note.endswith("and 2 more")


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 5))
def test_every_member_of_a_gzip_file_is_read(parts: list[bytes], between: int, behind: int) -> None:
    with TemporaryDirectory() as scratch:
        path = Path(scratch, "x.gz")
        packed = [gzip.compress(part) + bytes(between) for part in parts]
        path.write_bytes(b"".join(packed) + bytes(behind))
        assert b"".join(read_blocks(path)) == b"".join(parts)


@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_gzip_file_that_is_cut_or_followed_by_something_else_is_damaged(text: bytes, data: st.DataObject) -> None:
    whole = gzip.compress(text)
    cut = whole[: data.draw(st.integers(2, len(whole) - 1))]
    with TemporaryDirectory() as scratch:
        for raw in (cut, whole + b"x"):
            path = Path(scratch, "x.gz")
            path.write_bytes(raw)
            with pytest.raises(ImportFileError, match="damaged gzip"):
                list(read_blocks(path))


def test_members_end_where_chunks_of_the_file_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_PACKED_CHUNK", len(gzip.compress(b"one")))
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"one") + bytes(3) + gzip.compress(b"two") + gzip.compress(b"three") + bytes(30))
    assert b"".join(read_blocks(path)) == b"onetwothree"
