"""Adapters for trainers and pipelines: one file each, all around `scoregate.trainers.reward.Reward`."""
