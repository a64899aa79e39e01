"""The reference target: the NumPy evaluator behind the interface of a target."""
