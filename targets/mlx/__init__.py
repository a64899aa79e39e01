"""The MLX target: readable, shape-polymorphic Python for mlx.core."""
