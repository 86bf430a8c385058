"""Images, frames and grids of them, their resize, and pixels as tensors."""
