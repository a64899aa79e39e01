"""Running compiled models: executables, specialization per shape, artifacts.  Knows no particular target."""
