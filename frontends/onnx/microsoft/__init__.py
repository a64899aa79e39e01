"""Handlers of the operators of domain com.microsoft that published models use, by family; none of ai.onnx is here."""
