"""
ComfyUI: the nodes Score and Filter.

Link or copy this folder into ComfyUI's `custom_nodes`, with `scoregate-client` installed in its Python.
"""

from scoregate.trainers.comfyui.nodes import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
