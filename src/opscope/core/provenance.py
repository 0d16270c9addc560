"""Provenance: how a number was obtained. Every number that a user sees carries one; two kinds are never added up."""

from __future__ import annotations

from enum import StrEnum


class Provenance(StrEnum):
    """How a number was obtained."""

    ESTIMATED = "estimated"  # formulas
    SIMULATED = "simulated"  # our device, event by event
    CALIBRATED = "calibrated"  # our model, fitted to measurements
    VENDOR_MODEL = "vendor-model"  # a vendor's own performance model
    COMPILER_FACT = "compiler-fact"  # what a compiler decided or counted
    MEASURED = "measured"  # on the hardware
    EMULATED = "emulated"  # functional only: its times are never device time


def in_words(provenance: Provenance, basis: str) -> str:
    """How a number was obtained, and what that rests on: "estimated: vendor-model of X, scaled"."""
    return f"{provenance}: {basis}" if basis else str(provenance)
