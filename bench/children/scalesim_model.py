"""SCALE-Sim on a topology, traces not saved: python scalesim_model.py TOPOLOGY FOLDER."""

import sys
from pathlib import Path

from scalesim.scale_sim import scalesim

CONFIG = """
[general]
run_name = bench
[architecture_presets]
ArrayHeight: 32
ArrayWidth: 32
IfmapSramSzkB: 1024
FilterSramSzkB: 1024
OfmapSramSzkB: 1024
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Dataflow: ws
Bandwidth: 10
ReadRequestBuffer: 64
WriteRequestBuffer: 64
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport: false
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""

folder = Path(sys.argv[2])
config, layout = folder / "config.cfg", folder / "layout.csv"
config.write_text(CONFIG)
layout.write_text("Layer name,\n")
simulation = scalesim(save_disk_space=True, verbose=False, config=str(config), topology=sys.argv[1], layout=str(layout))
simulation.run_scale(top_path=str(folder / "out"))
