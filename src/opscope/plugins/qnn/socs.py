"""Qualcomm parts with an HTP: names, marketing names and ids, and what the compiler was seen to build for.

Architecture and VTCM were found by compiling for every id (onnxruntime-qnn 2.7.0). Part numbers are from QNN's public
header (QnnTypes.h, Qnn_SocModel_t), from the tables of ExecuTorch and LiteRT, and from Qualcomm AI Hub's list;
marketing names are those of Qualcomm's product pages. The seven parts with a `model` are those that the vendor's
performance model knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...core.entries import name_key
from ...core.errors import TargetError, printable

_PART_NUMBER = re.compile(r"([a-z]+)\d{3,}[a-z]*")


@dataclass(frozen=True, slots=True)
class Soc:
    """One part, as the compiler's option `soc_model` numbers it."""

    id: int
    arch: int
    vtcm_mb: int
    name: str = ""  # part number; empty: only the id is known
    marketing: tuple[str, ...] = ()  # other names: of the same part in other products, and of the shop
    model: str = ""  # family that the performance model simulates; empty: it has none for this part

    @property
    def words(self) -> tuple[str, ...]:
        """Everything that it is called."""
        return (self.name, *self.marketing) if self.name else ()

    @property
    def label(self) -> str:
        return self.name or f"id {self.id}"

    @property
    def title(self) -> str:
        brand = next((word for word in self.marketing if " " in word), "")
        words = [self.label, *([brand] if brand else [])]
        return f"{' · '.join(words)} (HTP v{self.arch}, {self.vtcm_mb} MB VTCM, id {self.id})"

    @property
    def has_model(self) -> bool:
        return bool(self.model)


_IDS: dict[int, dict[int, tuple[int, ...]]] = {  # architecture → VTCM in MB → ids
    68: {2: (32, 35, 38, 93), 4: (30, 34, 37), 8: (39, 62, 63)},
    69: {2: (41,), 4: (54,), 8: (36, 42, 53)},
    73: {
        2: (45, 46, 50, 58, 61, 64, 73, 74, 76, 78, 100, 101),
        4: (68, 70, 86, 91, 102),
        8: (43, 52, 60, 66, 77, 85, 89, 119, 120),
    },
    75: {8: (57, 67, 82, 90)},
    79: {8: (69, 75, 104, 105)},
    81: {2: (115, 117), 3: (108,), 4: (95, 96, 110, 111, 123), 8: (87, 88, 92, 94, 97, 99, 109), 16: (72,)},
    85: {8: (112, 113), 12: (103,), 16: (114,)},
}

_NAMES: dict[int, tuple[str, ...]] = {  # id → part number, other part numbers of the same, marketing names
    30: ("SM8350", "Snapdragon 888", "Snapdragon 888+"),
    32: ("SM7350", "Snapdragon 780G"),
    34: ("SM8325",),
    35: ("SM7325", "SC7280", "Snapdragon 778G", "Snapdragon 778G+", "Snapdragon 782G", "Snapdragon 7c+ Gen 3"),
    36: ("SM8450", "QCS8450", "Snapdragon 8 Gen 1"),
    37: ("SC8280X", "SC8280XP", "Snapdragon 8cx Gen 3"),
    38: ("SM7315",),
    39: ("SA8295",),
    41: ("SM7450", "Snapdragon 7 Gen 1"),
    42: ("SM8475", "Snapdragon 8+ Gen 1"),
    43: ("SM8550", "Snapdragon 8 Gen 2", "Snapdragon 8 Gen 2 for Galaxy"),
    45: ("SXR1230P",),
    46: ("SSG2115P",),
    50: ("SM6450", "Snapdragon 6 Gen 1"),
    52: ("SA8255", "SA8775"),
    53: ("SXR2230P", "Snapdragon XR2 Gen 2"),
    54: ("SM7475", "Snapdragon 7+ Gen 2"),
    57: ("SM8650", "Snapdragon 8 Gen 3", "Snapdragon 8 Gen 3 for Galaxy"),
    58: ("SSG2125P", "SAR1130P"),
    60: ("SC8380XP", "X1E80100", "QCS7181", "Snapdragon X Elite", "Snapdragon X Plus", "Dragonwing IQ-X7181"),
    61: ("SM7435", "Snapdragon 7s Gen 2"),
    62: ("SA8540",),
    63: ("AIC100", "Cloud AI 100"),
    64: ("SM7550", "Snapdragon 7 Gen 3"),
    66: ("QCS8550", "QCM8550"),
    67: ("SA8620P", "SA7255"),
    68: ("SM8635", "Snapdragon 8s Gen 3"),
    69: ("SM8750", "QCS8750", "Snapdragon 8 Elite", "Snapdragon 8 Elite for Galaxy", "Dragonwing Q-8750"),
    70: ("SM7675", "Snapdragon 7+ Gen 3"),
    72: ("SA8797", "SA8397"),
    73: ("SM7635", "Snapdragon 7s Gen 3"),
    74: ("SM6650", "Snapdragon 6 Gen 4"),
    75: ("SXR2330P",),
    76: ("SM6475", "Snapdragon 6 Gen 3"),
    77: ("QCS9100", "QCS9075", "Dragonwing IQ-9075"),
    78: ("QCM6690", "QCS6690", "Dragonwing Q-6690"),
    82: ("QCS8300", "QCS8275", "Dragonwing IQ-8275"),
    85: ("SM8735", "Snapdragon 8s Gen 4"),
    86: ("SM7750", "QCS7790", "Snapdragon 7 Gen 4", "Dragonwing Q-7790"),
    87: ("SM8850", "Snapdragon 8 Elite Gen 5", "Snapdragon 8 Elite Gen 5 for Galaxy"),
    88: ("SC8480XP", "Snapdragon X2 Elite"),
    93: ("QCM6490", "QCS6490"),
    95: ("SAR2230P",),
    96: ("SW6100", "Snapdragon Wear Elite"),
    97: ("SM8845", "Snapdragon 8 Gen 5"),
    114: ("SA8787",),
}

_MODELS = {
    52: "Kailua",
    62: "Lahaina",
    63: "Qranium",
    72: "Kaanapali",
    77: "Kailua",
    95: "Balsam",
    114: "Pakala",
}


def _table() -> tuple[Soc, ...]:
    rows = []
    for arch, sizes in _IDS.items():
        for vtcm, ids in sizes.items():
            for number in ids:
                name, *marketing = _NAMES.get(number, ("",))
                rows.append(Soc(number, arch, vtcm, name, tuple(marketing), _MODELS.get(number, "")))
    return tuple(sorted(rows, key=lambda soc: soc.id))


SOCS = _table()


def find_soc(text: str) -> Soc:
    """By id, part number (with or without a trailing P) or marketing name; spaces, case and dashes do not matter."""
    wanted = name_key(text)
    for soc in SOCS:
        keys = {str(soc.id), *(name_key(word) for word in soc.words)}
        if wanted in keys or wanted.removesuffix("p") in keys or _short(wanted) in {_short(key) for key in keys}:
            return soc
    near = _nearest_word(wanted)
    hint = f"did you mean {near}? " if near else ""
    known = ", ".join(" = ".join(soc.words) for soc in SOCS if soc.words)
    numbers = ", ".join(str(soc.id) for soc in SOCS if not soc.words)
    raise TargetError(
        f"SoC {printable(text)}", "", f"not known; {hint}known names: {known}; ids without a name: {numbers}"
    )


def _nearest_word(wanted: str) -> str:
    """The known word that is meant, if any: fewest letters changed, then alike for longest, then nearest in number.

    A part number with two other digits is another part, unless they only changed places; and one with other letters
    before the number is meant only where none has the same: QCS6491 is no SM6450.
    """
    letters, short = _letters(wanted), _bare(wanted)
    words = {_bare(name_key(word)): word for soc in SOCS for word in soc.words}
    alike = [key for key in words if letters and _letters(key) == letters]
    ranked = []
    for key in alike or words:
        changed = 1 if sorted(key) == sorted(short) else _changes(short, key)
        common = next((n for n, (a, b) in enumerate(zip(short, key, strict=False)) if a != b), len(short))
        ranked.append((changed, -common, abs(_last_number(short) - _last_number(key)), key))
    best = min(ranked)
    return words[best[3]] if best[0] <= (1 if letters else len(short) // 3) else ""


def _changes(one: str, other: str) -> int:
    """Letters to change, to add or to leave out."""
    row = list(range(len(other) + 1))
    for n, letter in enumerate(one, start=1):
        before, row[0] = row[0], n
        for m, against in enumerate(other, start=1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (letter != against))
    return row[-1]


def _letters(key: str) -> str:
    """Of a part number; a marketing name has none."""
    match = _PART_NUMBER.fullmatch(key)
    return match[1] if match else ""


def _last_number(key: str) -> int:
    return int((re.findall(r"\d+", key) or ["0"])[-1])


def _short(key: str) -> str:
    return key.removeprefix("qualcomm").removeprefix("snapdragon").removeprefix("dragonwing")


def _bare(key: str) -> str:
    """Without a maker's words, and of part numbers without the P that some have behind them."""
    return _short(key).removesuffix("p") if _letters(key) else _short(key)
