"""CodeFusion Studio: targets, command lines, and the report by its rules."""

from __future__ import annotations

from ...core.manifest import Example, Manifest, ReportStyle, Verb

MANIFEST = Manifest(
    name="cfs",
    title="CodeFusion Studio",
    package=__package__,
    order=55,
    targets="targets",
    verbs=(
        Verb("cfsai", "CodeFusion Studio 2.0-2.1 command line: cfsai profile | compat", ".commands"),
        Verb("cfsutil", "CodeFusion Studio 2.2 command line: cfsutil ai profile | compat", ".commands"),
    ),
    report_styles=(ReportStyle("cfs", ".report_style:FlatStyle"),),
    examples=(Example("report", "opscope report resnet.tflite --target cfs-sample --compat cfs"),),
)
