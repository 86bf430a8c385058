"""The watch of a reward: other metrics score a sample of its pictures, for the log and a test for hacking."""

from scoregate.trainers.watch.settings import Watch

__all__ = ["Watch"]
