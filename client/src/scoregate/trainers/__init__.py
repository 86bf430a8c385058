"""Adapters for trainers and pipelines: one file each, all around `scoregate.trainers.Reward`."""

from scoregate.errors import NoScoreError
from scoregate.trainers.reward import Reward

__all__ = ["NoScoreError", "Reward"]
