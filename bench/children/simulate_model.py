"""Compile a model for 16 cores per device and simulate one inference: python simulate_model.py MODEL TARGET DEVICES.

Prints the commands of the program, and the seconds of its simulation alone.
"""

import sys
from time import perf_counter

from opscope.api import compile_model
from opscope.simulation import simulate

compiled = compile_model(sys.argv[1], sys.argv[2], cores=16, devices=int(sys.argv[3]), stats_level=70)
begin = perf_counter()
simulate(compiled.program)
print(len(compiled.program.commands), perf_counter() - begin)
