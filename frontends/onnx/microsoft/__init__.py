"""Handlers of the operators of domain com.microsoft that published models use, by family; no ai.onnx operator is here."""
