"""Small files of the vendor's tools, typed by hand."""

from __future__ import annotations

from support.plugins.qnn.qnn_files import HEADER

DEVICE_CSV = f"""{HEADER}
0,FINALIZE,1000,US,BACKEND,ROOT,QNN (finalize) time
0,BACKEND,4,COUNT,BACKEND,ROOT,Number of HVX threads used
0,BACKEND,1,COUNT,BACKEND,ROOT,Num times yield occured
0,BACKEND,30,US,BACKEND,ROOT,Time for initial VTCM acquire
0,BACKEND,50,US,BACKEND,ROOT,Time for HVX + HMX power on and acquire
0,BACKEND,1200000,CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)
0,NODE,700000,CYCLES,BACKEND,SUB-EVENT,conv0_token_1:OpId_24 (cycles)
0,NODE,500000,CYCLES,BACKEND,SUB-EVENT,add:with:colons:OpId_30 (cycles)
0,BACKEND,900,US,BACKEND,ROOT,RPC (execute) time
0,BACKEND,800,US,BACKEND,ROOT,Accelerator (execute) time
0,EXECUTE,950,US,BACKEND,ROOT,QNN (execute) time
0,BACKEND,4,COUNT,BACKEND,ROOT,Number of HVX threads used
0,BACKEND,3,COUNT,BACKEND,ROOT,Num times yield occured
0,BACKEND,10,US,BACKEND,ROOT,Time for initial VTCM acquire
0,BACKEND,10,US,BACKEND,ROOT,Time for HVX + HMX power on and acquire
0,BACKEND,1000000,CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)
0,NODE,600000,CYCLES,BACKEND,SUB-EVENT,conv0_token_1:OpId_24 (cycles)
0,NODE,400000,CYCLES,BACKEND,SUB-EVENT,add:with:colons:OpId_30 (cycles)
0,BACKEND,700,US,BACKEND,ROOT,RPC (execute) time
0,BACKEND,600,US,BACKEND,ROOT,Accelerator (execute) time
0,EXECUTE,750,US,BACKEND,ROOT,QNN (execute) time
"""

VIEWER_TEXT = """\
Qnn Init/Prepare/Finalize/De-Init/Execute/Lib-Load Statistics:
------------------------------------------------------------
Init Stats:
-----------
    NetRun:  331158 us

Finalize Stats:
---------------
Graph 0 (model):
    NetRun:  256372 us
    Backend (RPC (finalize) time): 4922 us
    Backend (QNN (finalize) time): 256364 us

Execute Stats (Average):
------------------------
Total Inference Time:
---------------------
Graph 0 (model):
    NetRun:  2952 us
    Backend (Number of HVX threads used): 4 count
    Backend (RPC (execute) time): 2920 us
    Backend (QNN accelerator (execute) time): 2600 us
    Backend (Accelerator (execute) time): 2492 us
        conv0:OpId_24 (cycles): 1234 cycles
    Backend (QNN (execute) time): 2949 us

Execute Stats (Overall):
------------------------
    NetRun IPS:  214.8888 inf/sec

Execute Stats (Min):
--------------------
Graph 0 (model):
    NetRun:  2800 us

Execute Stats (Max):
--------------------
Graph 0 (model):
    NetRun:  3100 us
"""

OPTRACE = """{"header": {"artifact_type": "OP_TRACE"}, "traceEvents": [
{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "Core 0 Overview"}},
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "QNN::conv0"}},
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "Non Executed Tensors"}},
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 256, "args": {"name": "Core:0 Type: HMX Tid: 256"}},
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 512, "args": {"name": "Core:0 Type: HVX Tid: 512"}},
{"ph": "X", "name": "q::Conv", "pid": 0, "tid": 256, "ts": 100, "dur": 400, "args": {"QNN Op Name": "conv0_token_3",
 "QNN Op Type": "Conv2d", "HTP Op Type": "q::Conv", "ID": 7, "Duration (cycles)": 400, "Dominant Path Cycles": 300}},
{"ph": "X", "name": "q::Add", "pid": 0, "tid": 512, "ts": 500, "dur": 100, "args": {"QNN Op Name": "add",
 "HTP Op Type": "q::Add", "ID": "8", "Dominant Path Cycles": 100}},
{"ph": "X", "name": "q::View", "pid": 0, "tid": 1, "ts": 0, "dur": 0, "args": {"QNN Op Name": "flat"}},
{"ph": "X", "name": "q::Conv", "pid": 1, "tid": 256, "ts": 100, "dur": 400, "args": {"QNN Op Name": "conv0_token_3"}}
]}"""

QHAS = """{"header": {"artifact_type": "QHAS", "version": {"major": 1, "minor": 0, "patch": 0}}, "model_id": "m",
"data": {"htp_overall_summary": {"data": [{"time_us": 500, "timeline_cycles": 600000, "total_dram_read": 10,
"total_dram_write": 20, "peak_vtcm_alloc": 30,
"htp_resources": {"data": [{"unit": "HMX", "utilization": 40.0, "cycles_used": 240000}]}}]},
"qnn_op_instances_nodes": {"data": [{"qnn_op": "conv0_token_3", "qnn_op_type": "Conv2d", "cycles": 400000,
"num_htp_ops": 3, "dram_read": 10, "dram_write": 20, "percent_dominant_path_cycles_htp_0": 75.0}]}}}"""
