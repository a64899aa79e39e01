"""The typed graph IR: types, graphs, operators, their inference and reference, text and container formats."""
