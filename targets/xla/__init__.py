"""The XLA target: StableHLO through the MLIR bindings, compiled and run with PJRT."""
