"""The ONNX front door: `import_onnx` and `check_onnx`.  Importing this package imports onnx."""

from .check import Report, Unsupported
from .importer import check_onnx, import_onnx

__all__ = ["Report", "Unsupported", "check_onnx", "import_onnx"]
