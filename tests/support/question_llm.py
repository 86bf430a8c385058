"""A question LLM whose answers a test gives."""

import asyncio
from contextlib import nullcontext


class FakeHandle:
    """A question LLM that answers what it is told, and keeps in which lane it was asked."""

    name = "questions"

    def __init__(self, info):
        self.info, self.asked, self.promoted = info, [], []
        self.answers = asyncio.Queue()

    def admit(self, context, demand):
        """Takes everything."""

    def used_by(self, context):
        return nullcontext()

    def shared_by(self, context, work):
        """It never goes."""

    async def call(self, calls, context):
        self.asked.append(context.lane)
        with context.promoting(lambda: self.promoted.append(calls[0].seed)):
            return [await self.answers.get()]
