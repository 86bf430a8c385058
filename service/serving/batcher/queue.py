"""What waits for a model.  Nothing here waits or runs: a device asks for the next batch."""

from collections import deque
from math import inf

from service.core.lanes import BULK, INTERACTIVE, LANES
from service.serving.batcher.batch import QueuedCall, Shares, take_batch
from service.serving.batcher.cost_model import CostModel
from service.serving.batcher.pending import PendingCalls
from service.serving.demand import Demand
from service.serving.reservation import Reservation

RECOVERY = 1.05  # how fast the limit that an out-of-memory set rises again, for each batch
MAX_SHARE = 0.5  # of a lane, for one request
CHARACTERS_PER_TOKEN = 4
USUAL_CHARACTERS = 400  # of a call; what it usually costs holds them already


class Queue:
    """
    The calls that wait for one model.

    Args:
        max_items, max_cost: of a batch.
        max_batch_s: how long a batch may take, by the cost model.
        max_waiting: cost that may wait in one lane; whoever admits requests and calls keeps to it.
        linger_s: how long a batch that is not full waits for more, from its first call's arrival.

    Attributes:
        cost_model: how long batches take.
        pending: calls that are being prepared.
        reserved: by lane, tokens of requests that were admitted and have not asked for them yet.
    """

    def __init__(
        self,
        *,
        max_items: int,
        max_cost: int,
        max_waiting: int,
        max_batch_s: float = inf,
        shares: Shares | None = None,
        linger_s: float = 0.0,
    ) -> None:
        self.cost_model, self.linger_s = CostModel(), linger_s
        self.pending = PendingCalls()
        self._max_items, self._max_cost, self._max_waiting = max_items, max_cost, max_waiting
        self._max_batch_s, self._shares = max_batch_s, shares or Shares()
        self._memory = float(max_cost)  # tokens that fit, as far as is known
        self._credit = 0.0
        self._typical_cost = 0.0  # tokens of a call, a running mean
        self.reserved = dict.fromkeys(LANES, 0.0)
        self._lanes: dict[str, deque[QueuedCall]] = {lane: deque() for lane in LANES}
        # Of live calls, kept up to date as they come, leave and are taken: to queue one walks no lane.
        self._count = dict.fromkeys(LANES, 0)
        self._cost = dict.fromkeys(LANES, 0)

    def __repr__(self) -> str:
        return f"<Queue {self._count}>"

    def depth(self, lane: str) -> int:
        """How many live calls wait in *lane*."""
        return self._count[lane]

    def is_full(self, lane: str, reserved: float = 0.0) -> bool:
        """Whether *lane* takes no more, beside so much that is *reserved*."""
        return self._cost[lane] + reserved >= self._max_waiting

    @property
    def most_at_once(self) -> float:
        """Tokens that one request may ask for: a share of a lane, and what a batch holds in any case."""
        return max(MAX_SHARE * self._max_waiting, self._max_cost)

    def cost_of(self, demand: Demand) -> float:
        """Tokens that *demand* should have: of calls as they were lately, and of text beyond the usual."""
        long = max(0, demand.characters - USUAL_CHARACTERS * demand.calls)
        return demand.calls * self._usual_cost + long / CHARACTERS_PER_TOKEN

    @property
    def _usual_cost(self) -> float:
        """Tokens of a call as they were lately; those of the example before the first call."""
        return self._typical_cost or self.cost_model.typical_cost

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """Count an admitted *demand* against *lane*, until its *parts* have begun one by one."""
        return Reservation(self.reserved, lane, self.cost_of(demand), parts)

    def full_batch(self, call: float) -> int:
        """How many calls of so many tokens a batch holds; one at least, however costly."""
        return max(1, int(min(self._max_items, self._cost_limit() / call))) if call else self._max_items

    def takes_s(self, cost: float) -> float:
        """Seconds in which so many tokens of usual calls will be done, in batches of their own."""
        if not cost:
            return 0.0
        largest = max(self._usual_cost, min(self._cost_limit(), self._max_items * self._usual_cost))
        return self.cost_model.drain_s(cost, largest)

    def alone_s(self, cost: float) -> float:
        """
        Seconds in which so many tokens can be done, if nothing else is: at least, as far as is known.

        Work is refused by it, so it is no guess: a model that is slow for the moment may be as fast again as
        it was, and where only batches of one size have been seen, larger ones may take no longer.
        """
        best_s = cost * self.cost_model.best_per_token_s if cost else 0.0
        if self.cost_model.knows_sizes:
            return min(best_s, self.takes_s(cost))
        largest = min(self._memory, self._max_items * self._usual_cost)
        return min(best_s, max(1.0, cost / largest) * self.cost_model.typical_s) if largest else 0.0

    def drain_s(self, lane: str) -> float:
        """Seconds in which what waits in *lane*, or is on its way there, will have been done."""
        return self.takes_s(self._cost[lane] + self.pending.calls(lane) * self._typical_cost)

    @property
    def waiting(self) -> str:
        """The most urgent lane that holds a live call; empty where neither does."""
        return next((lane for lane in LANES if self._count[lane]), "")

    @property
    def fills_a_batch(self) -> bool:
        """Whether as much waits as a batch can hold."""
        return sum(self._count.values()) >= self._max_items or sum(self._cost.values()) >= self._cost_limit()

    def oldest(self) -> float:
        """When the first of the live calls arrived; only where one waits."""
        return min(call.arrived for lane in self._lanes.values() for call in lane if call.counted_in)

    def put(self, call: QueuedCall) -> None:
        """Queue *call* in its lane; it leaves by itself when its result is done."""
        cost = call.prepared.cost
        self._typical_cost += (cost - self._typical_cost) * (0.1 if self._typical_cost else 1.0)
        self._lanes[call.lane].append(call)
        call.home = self
        self._count_in(call, call.lane)
        call.result.add_done_callback(lambda _: self._leave(call))

    def promote(self, call: QueuedCall) -> None:
        """Make *call* interactive; where it still waits, it takes its place in that lane by arrival."""
        call.lane = INTERACTIVE
        if call.counted_in == BULK:
            self._lanes[BULK].remove(call)
            lane = self._lanes[INTERACTIVE]
            lane.insert(sum(other.arrived <= call.arrived for other in lane), call)
            self._count_in(call, INTERACTIVE)

    def take(self, now: float, *, urgent: bool = False) -> list[QueuedCall]:
        """The next batch; empty when nobody waits, or nobody *urgent* where only they may come."""
        batch, credit = take_batch(
            self._lanes | {BULK: deque()} if urgent else self._lanes,
            self._shares,
            self._credit,
            now,
            max_items=self._max_items,
            max_cost=self._cost_limit(),
            fixed_cost=self.cost_model.fixed_cost,
        )
        self._credit = self._credit if urgent else credit
        for call in batch:
            self._count_in(call, "")
        return batch

    def take_all(self, now: float) -> list[QueuedCall]:
        """Everyone who waits, who does so no longer."""
        return [call for batch in iter(lambda: self.take(now), []) for call in batch]

    def finished(self, cost: int, seconds: float, gap_s: float = 0.0) -> None:
        """Learn from a batch that succeeded; memory that held it may hold a little more."""
        self.cost_model.observe(cost, seconds, gap_s)
        self._memory = min(self._max_cost, self._memory * RECOVERY)

    def ran_out_of_memory(self, cost: int) -> None:
        """Batches stay under half of *cost* from now on, until memory has proved to hold more."""
        self._memory = max(1.0, min(self._memory, cost / 2))

    def _cost_limit(self) -> float:
        """Tokens of the next batch.  Where one call alone takes too long, as many as take twice its time."""
        one_s = self.cost_model.run_s(self._typical_cost)
        seconds = self._max_batch_s if one_s <= self._max_batch_s else 2 * one_s
        return min(self._memory, self.cost_model.largest_within(seconds))

    def _leave(self, call: QueuedCall) -> None:
        """*call* has its result; it may have moved to another queue before."""
        if call.home is self:
            self._count_in(call, "")

    def _count_in(self, call: QueuedCall, lane: str) -> None:
        """Count *call* in *lane* and no longer where it was; "" once it was taken or its caller has gone."""
        for place, sign in ((call.counted_in, -1), (lane, 1)):
            if place:
                self._count[place] += sign
                self._cost[place] += sign * call.prepared.cost
        call.counted_in = lane
