"""ONNX → TFLite by onnx2tf, and float TFLite → integers by Google's quantiser, in the environment `convert`."""
