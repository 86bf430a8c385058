"""Adapters for trainers and pipelines: one file each, all around `scoregate.trainers.Reward`."""

from scoregate.trainers.reward import NoScore, Reward

__all__ = ["NoScore", "Reward"]
