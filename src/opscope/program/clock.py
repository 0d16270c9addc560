"""A program at another core clock: cycles stay, and what has a rate per second keeps it."""

from __future__ import annotations

from dataclasses import replace

from .program import Program


def at_clock(program: Program, factor: float) -> Program:
    """The program with a core clock so many times as fast: memories, routes and latencies keep their seconds."""
    return replace(
        program,
        clock_hz=program.clock_hz * factor,
        routes=tuple(
            replace(
                route,
                bytes_per_cycle=route.bytes_per_cycle / (1.0 if route.on_core_clock else factor),
                core_bytes_per_cycle=route.core_bytes_per_cycle / (1.0 if route.on_core_clock else factor),
                latency_cycles=route.latency_cycles * factor,
            )
            for route in program.routes
        ),
        memories=tuple(
            memory
            if memory.bytes_per_cycle is None or memory.on_core_clock
            else replace(memory, bytes_per_cycle=memory.bytes_per_cycle / factor)
            for memory in program.memories
        ),
    )
