"""Laws of compiled programs, on random graphs and on targets with little of everything."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "compiler"))
from compiler_build import KB, build, small_target
from compiler_graphs import graphs
from compiler_laws import all_laws

from opscope.device import simulate
from opscope.graph import Graph

Limits = dict[str, int]
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


LIMITS = st.fixed_dictionaries(
    {
        "local_bytes": st.sampled_from([24 * KB, 40 * KB, 96 * KB, 400 * KB, 4000 * KB]),
        "weight_bytes": st.sampled_from([1 * KB, 4 * KB]),
        "activation_bytes": st.sampled_from([2 * KB, 8 * KB, 64 * KB]),
        "buffers": st.integers(1, 3),
        "bandwidth": st.sampled_from([0.1, 1.0, 10.0]),
    }
)  # of a small target


@PATIENT
@given(graphs(), LIMITS, st.integers(1, 4), st.integers(1, 2), st.sampled_from(["tensor", "pipeline"]))
def test_programs_obey_the_laws(graph: Graph, limits: Limits, cores: int, devices: int, parallel: str) -> None:
    built = build(graph, small_target(**limits), cores=cores, devices=devices, parallel=parallel)
    all_laws(built, simulate(built.program))
