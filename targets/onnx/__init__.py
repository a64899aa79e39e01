"""The ONNX target: export in the idioms of ONNX, run on ONNX Runtime."""
