"""Qualcomm parts with an HTP: names, marketing names and ids, and what the compiler was seen to build for.

Architecture and VTCM were found by compiling for every id (onnxruntime-qnn 2.7.0); names are from ExecuTorch's public
table. The seven parts with a `model` are those that the vendor's performance model knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import TargetError, did_you_mean, printable


@dataclass(frozen=True, slots=True)
class Soc:
    """One part, as the compiler's option `soc_model` numbers it."""

    id: int
    arch: int
    vtcm_mb: int
    name: str = ""  # part number; empty: only the id is known
    marketing: tuple[str, ...] = ()
    model: str = ""  # family that the performance model simulates; empty: it has none for this part

    @property
    def label(self) -> str:
        return self.name or f"id {self.id}"

    @property
    def title(self) -> str:
        words = [self.label, *self.marketing[:1]]
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

_NAMES: dict[int, tuple[str, ...]] = {  # id → part number, marketing names
    30: ("SM8350", "Snapdragon 888"),
    36: ("SM8450", "Snapdragon 8 Gen 1"),
    39: ("SA8295",),
    42: ("SM8475", "Snapdragon 8+ Gen 1"),
    43: ("SM8550", "Snapdragon 8 Gen 2"),
    45: ("SXR1230P",),
    46: ("SSG2115P",),
    52: ("SA8255",),
    53: ("SXR2230P", "Snapdragon XR2 Gen 2"),
    57: ("SM8650", "Snapdragon 8 Gen 3"),
    58: ("SSG2125P",),
    60: ("SC8380XP", "Snapdragon X Elite"),
    62: ("SA8540",),
    63: ("AIC100", "Cloud AI 100"),
    69: ("SM8750", "Snapdragon 8 Elite"),
    72: ("SA8797",),
    75: ("SXR2330P",),
    77: ("QCS9100",),
    87: ("SM8850", "Snapdragon 8 Elite Gen 5"),
    95: ("SAR2230P",),
    96: ("SW6100",),
    97: ("SM8845",),
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

_PROXIES = {68: 62, 69: 62, 73: 52, 75: 52, 79: 52, 81: 72, 85: 114}  # architecture → nearest part with a model


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
    wanted = _key(text)
    for soc in SOCS:
        keys = {str(soc.id), *(_key(word) for word in (soc.name, *soc.marketing) if word)}
        if wanted in keys or wanted.removesuffix("p") in keys or wanted.removeprefix("snapdragon") in keys:
            return soc
        if any(key.removeprefix("snapdragon") == wanted for key in keys):
            return soc
    known = [word for soc in SOCS for word in (soc.name, *soc.marketing) if word]
    hint = did_you_mean(text, known)
    numbers = ", ".join(str(soc.id) for soc in SOCS if not soc.name)
    raise TargetError(
        f"SoC {printable(text)}", "", f"not known; {hint}known names: {', '.join(known)}; ids without a name: {numbers}"
    )


def proxy_of(soc: Soc) -> Soc:
    """The part with a performance model that is nearest in architecture."""
    if soc.has_model:
        return soc
    return next(other for other in SOCS if other.id == _PROXIES[soc.arch])


def _key(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum() or c == "+")
