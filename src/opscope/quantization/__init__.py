"""Quantised copies of ONNX models: made by ONNX Runtime's tools with the user's data, held against the float model."""
