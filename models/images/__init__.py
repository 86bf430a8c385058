"""Images, frames and grids of them, and pixels as tensors."""
