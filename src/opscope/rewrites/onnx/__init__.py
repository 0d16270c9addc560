"""Rewrites of ONNX models, in the intermediate representation of the onnx-ir package."""
