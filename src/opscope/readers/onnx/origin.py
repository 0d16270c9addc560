"""Where a node comes from in Python code: what torch's exporter leaves in its metadata.

    name_scopes   ['', 'layers.0', 'layers.0.attention', 'matmul']    the last one is the node itself
    class_hierarchy   ['app.net.Net', 'app.net.Layer', 'app.net.Attention', 'aten.matmul.default']
    stack_trace   File "/home/ada/app/net.py", line 12, in forward …

becomes the module `layers.0.attention` and the line `net.py:12`. A file of the model may come from another machine, so
that paths are not looked for: what they all have in common is left out, and what is behind `site-packages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import commonpath

from ...core.errors import printable
from .model import Node

_KEY = "pkg.torch.onnx."
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/")
_OF_TORCH = re.compile(r".*/(?:site|dist)-packages/torch/|.*/torch/(?:nn|_[a-z]\w*)/|<(?!ipython|stdin)")
_BACKSLASH = "\\"
_MOST_CHARACTERS = 200


def origin_of(metadata: Mapping[str, str]) -> tuple[str, str]:
    """Module of a node, and the innermost frame that is not torch's own; empty where nothing is said."""
    scopes, classes = (_listed(metadata.get(_KEY + key, "")) for key in ("name_scopes", "class_hierarchy"))
    module = scopes[-2] if len(scopes) > 1 else ""
    if not module and len(classes) > 1:
        module = classes[0].rpartition(".")[2]  # the outermost one has no path, but it has a class
    return printable(module, _MOST_CHARACTERS), frame_of(metadata.get(_KEY + "stack_trace", ""))


def frame_of(stack_trace: str) -> str:
    """The innermost frame of a stack, as Python prints one, that is not torch's own."""
    frames = _FRAME.findall(stack_trace)
    return innermost((path, int(line)) for path, line in reversed(frames))


def innermost(frames: Iterable[tuple[str, int]]) -> str:
    """Of files with lines, innermost first, the first one that is not torch's own; empty: there is none."""
    places = (f"{path.replace(_BACKSLASH, '/')}:{line}" for path, line in frames)
    return next((place for place in places if not _OF_TORCH.match(place)), "")


def _listed(text: str) -> list[str]:
    """Strings of a list as Python prints it."""
    return [one or other for one, other in _QUOTED.findall(text)]


@dataclass(frozen=True, slots=True)
class Lines:
    """Paths of code as a user knows them: what all files of the user have in common is left out."""

    common: str  # folder, with its slash

    @classmethod
    def of_nodes(cls, nodes: Sequence[Node]) -> Lines:
        return cls.of_frames(node.frame for node in _all(nodes))

    @classmethod
    def of_frames(cls, frames: Iterable[str]) -> Lines:
        folders = sorted({_folder(frame) for frame in frames if frame and not _INSTALLED.match(frame)})
        common = commonpath(folders) if folders and len({folder[:1] == "/" for folder in folders}) == 1 else ""
        return cls(f"{common}/" if common.strip("/") else common)

    def shown(self, frame: str) -> str:
        installed = _INSTALLED.match(frame)
        return printable(frame[installed.end() :] if installed else frame.removeprefix(self.common), _MOST_CHARACTERS)


def _folder(frame: str) -> str:
    return frame[: frame.rfind("/") + 1]


def _all(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for _, body in node.bodies():
            yield from _all(body.nodes)
