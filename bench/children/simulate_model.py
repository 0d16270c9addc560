"""Compile a model for 16 cores per device and simulate one inference: python simulate_model.py MODEL TARGET DEVICES."""

import sys

from opscope.api import compile_model
from opscope.device import simulate

compiled = compile_model(sys.argv[1], sys.argv[2], cores=16, devices=int(sys.argv[3]), stats_level=70)
simulate(compiled.program)
print(f"{len(compiled.program.commands)} commands")
