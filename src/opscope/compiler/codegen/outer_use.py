"""How much of outer memory activations take while commands are emitted, per device."""

from __future__ import annotations


class OuterUse:
    """Bytes of tensors that lie in the outer memory of each device now, and at the most so far.

    Cores write a part each, or one of them the whole for all: a device holds no tensor more than once.
    """

    def __init__(self, *, devices: int, cores: int) -> None:
        self.cores = cores
        self.most = [0.0] * devices
        self._now = [0.0] * devices
        self._parts: dict[int, dict[int, float]] = {}  # tensor → lane → bytes
        self._whole: dict[int, float] = {}

    def hold(self, tensor: int, lane: int, size: float, *, whole: float) -> None:
        """A lane's part of a tensor, or all of it, lies in outer memory from now on."""
        device, self._whole[tensor] = lane // self.cores, whole
        before = self._bytes(tensor, device)
        self._parts.setdefault(tensor, {})[lane] = size
        self._now[device] += self._bytes(tensor, device) - before
        self.most[device] = max(self.most[device], self._now[device])

    def drop(self, tensor: int, lane: int) -> None:
        """A lane's part has become a part of another tensor."""
        device = lane // self.cores
        before = self._bytes(tensor, device)
        self._parts.get(tensor, {}).pop(lane, None)
        self._now[device] -= before - self._bytes(tensor, device)

    def free(self, tensor: int) -> None:
        """Nobody reads a tensor any more."""
        for lane in tuple(self._parts.get(tensor, ())):
            self.drop(tensor, lane)

    def _bytes(self, tensor: int, device: int) -> float:
        parts = self._parts.get(tensor, {})
        return min(
            self._whole[tensor] if parts else 0.0,
            sum(size for lane, size in parts.items() if lane // self.cores == device),
        )
