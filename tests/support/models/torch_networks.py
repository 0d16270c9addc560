"""Modules of PyTorch, and factories of them as a user would name them: `support.models.torch_networks:mlp`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Mlp(nn.Module):
    """Two products, of 16 by 32 and 32 by 4."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 32)
        self.outer = nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.relu(self.inner(x))
        return self.outer(hidden)


class ConvNet(nn.Module):
    """A convolution with a norm, in a stage, and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.stage(image).mean((2, 3)))


class Attention(nn.Module):
    """Two heads of 16."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    """One layer of a transformer."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.down(functional.gelu(self.up(x)))


class Encoder(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Branching(nn.Module):
    """What torch.export refuses: Python decides by data."""

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * 2
        return x


class Eigenvalues(nn.Module):
    """What ONNX has no operator for."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvals(x)


def mlp() -> tuple[nn.Module, Tensor]:
    return Mlp(), torch.zeros(2, 16)


def bare() -> nn.Module:
    return Mlp()


def meta_decoder() -> tuple[nn.Module, Tensor]:
    """A layer as of 7 billion parameters, of which there is not one byte."""
    with torch.device("meta"):
        return Block(4096), torch.zeros(1, 8, 4096)


def wrong() -> str:
    return "no module"
