"""
`python -m loadtest.watch`: simulated curves of training runs, for the test of `Reward(watch=…)`.

    python -m loadtest.watch calibrate              the thresholds, of clean runs
    python -m loadtest.watch rates                  false alarms of noise that is not calibrated for
    python -m loadtest.watch delays                 steps from the change to the alarm, of hacked runs
    python -m loadtest.watch draw FILE              two runs as a picture

A value is the mean of a step.  The noise of calibrated and of hacked runs has a standard deviation of 1,
whatever its autocorrelation.
"""

import argparse
import math
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from statistics import median

import matplotlib.figure

from scoregate.trainers.divergence import STEP_SCALES, STEPS_OF_A_RUN, THRESHOLDS, Blocks, Divergence, largest

Curve = list[float]
RUNS = 5000  # runs of a calibration, for each kind of noise
CALIBRATION = 0  # the seeds from here to `FRESH` are those of the calibration
FRESH = 1_000_000


@dataclass(frozen=True)
class Noise:
    """
    Noise of a step's mean; a random walk if *memory* is 1, else stationary unless it *grows*.

    Attributes:
        memory: the autocorrelation of its slow part from one step to the next.
        white: the share of its variance without any autocorrelation, as from the choice of prompts.
        degrees: of Student's t, from which it is drawn, for outliers; the normal distribution if 0.
        grows: the factor of its spread from the middle of a run on.
    """

    memory: float = 0.0
    white: float = 0.0
    degrees: float = 0.0
    grows: float = 1.0

    def draw(self, dice: random.Random) -> Iterator[float]:
        """Yield the noise of one step after another."""
        slow, fresh = self._one(dice), math.sqrt(1 - self.memory**2) or 1.0
        for step in count():
            white = math.sqrt(self.white) * self._one(dice) if self.white else 0.0
            grown = self.grows if step >= STEPS_OF_A_RUN // 2 else 1.0
            yield grown * (math.sqrt(1 - self.white) * slow + white)
            slow = self.memory * slow + fresh * self._one(dice)

    def _one(self, dice: random.Random) -> float:
        normal, half = dice.gauss(0, 1), self.degrees / 2
        return normal / math.sqrt(dice.gammavariate(half, 1 / half)) if half else normal


NOISES = {
    "white": Noise(),
    "AR(1) 0.3": Noise(0.3),
    "AR(1) 0.6": Noise(0.6),
    "AR(1) 0.8": Noise(0.8),
    "AR(1) 0.9": Noise(0.9),
    "AR(1) 0.9 + white": Noise(0.9, 0.5),
    "AR(1) 0.98 + white": Noise(0.98, 0.7),
}
WALK = Noise(1.0)  # it has no level, and is not calibrated for
HELD = {  # noise without a calibration, for which the rates hold
    "white, spread doubles": Noise(grows=2.0),
    "white, t(3)": Noise(degrees=3.0),
    "white, t(2)": Noise(degrees=2.0),
}
EXCEEDED = {  # noise for which the rates do not hold
    "AR(1) 0.8, spread doubles": Noise(0.8, grows=2.0),
    "AR(1) 0.8, t(3)": Noise(0.8, degrees=3.0),
    "AR(1) 0.8, t(2)": Noise(0.8, degrees=2.0),
    "random walk": WALK,
}
USUAL = Noise(0.5)
SLOPES = (0.3, 0.5)  # standard deviations that a hacked run's metric loses in a step
Trend = Callable[[int], float]


def flat(step: int) -> float:
    """Return a mean that stays."""
    return 0.0


def learned(step: int, gain: float = 8.0, pace: float = 150.0) -> float:
    """Return a mean that rises quickly at first, as the curve of a run."""
    return gain * (1 - math.exp(-step / pace))


def lost(step: int, change: int, slope: float) -> float:
    """Return what a metric has lost since the run is hacked."""
    return slope * max(0, step - change)


def run(
    seed: int,
    noise: Noise,
    reward: Trend,
    watched: Trend,
    steps: int = STEPS_OF_A_RUN,
    shared: float = 0.5,
) -> tuple[Curve, Curve]:
    """
    Return the curves of a run: its rewards and a watched metric.

    Args:
        shared: the share of the noise's variance that both have, as from the choice of prompts.
    """
    dice = random.Random(seed)
    both, one, other = (noise.draw(dice) for _ in range(3))
    common, own = math.sqrt(shared), math.sqrt(1 - shared)
    curves: tuple[Curve, Curve] = [], []
    for step in range(steps):
        together = common * next(both)
        curves[0].append(reward(step) + together + own * next(one))
        curves[1].append(watched(step) + together + own * next(other))
    return curves


def deepest(noise: Noise, seed: int, steps: int = STEPS_OF_A_RUN) -> float:
    """Return the largest fall at any step of a metric that does not fall."""
    values, scales, most = noise.draw(random.Random(seed)), [Blocks(each) for each in STEP_SCALES], 0.0
    for _ in range(steps):
        value = next(values)
        for blocks in scales:
            blocks.add(-value)
        most = max(most, largest(scales))
    return most


def calibrated(noise: Noise, pool: ProcessPoolExecutor, runs: int) -> dict[float, float]:
    """Return the fall that is exceeded in each share of *runs*."""
    falls = sorted(pool.map(partial(deepest, noise), range(CALIBRATION, CALIBRATION + runs), chunksize=50))
    return {rate: falls[-1 - int(rate * runs)] for rate in THRESHOLDS}


def hacked(seed: int, slope: float, noise: Noise, change: int, steps: int) -> tuple[Curve, Curve]:
    """Return the curves of a run whose reward rises faster from a step on, while the metric falls."""

    def gained(step: int) -> float:
        return learned(step) + lost(step, change, slope)

    def watched(step: int) -> float:
        return learned(min(step, change)) - lost(step, change, slope)

    return run(seed, noise, gained, watched, steps)


def alarm(curves: tuple[Curve, Curve], alarms: float = 0.05) -> int | None:
    """Return the first step with an alarm."""
    test = Divergence(alarms)
    return next((step for step, pair in enumerate(zip(*curves, strict=True)) if test.add(*pair) >= 1), None)


def delay(seed: int, slope: float, noise: Noise, change: int = 200) -> float:
    """Return the steps from the change to the alarm: infinity for none, or one before the change."""
    found = alarm(hacked(seed, slope, noise, change, change + 100))
    return math.inf if found is None or found < change else found - change


def print_thresholds() -> None:
    """Print the calibrated thresholds of each kind of noise, and the largest."""
    with ProcessPoolExecutor() as pool:
        found = {name: calibrated(noise, pool, RUNS) for name, noise in NOISES.items()}
        walk = calibrated(WALK, pool, RUNS)
    for name, falls in {**found, "random walk, not in the worst": walk}.items():
        print(name, {rate: round(fall, 2) for rate, fall in falls.items()})
    print("worst", {rate: max(round(falls[rate], 2) for falls in found.values()) for rate in THRESHOLDS})


def print_rates() -> None:
    """Print the share of 1,000 runs with a false alarm at the rate 0.05, for noise of other kinds."""
    with ProcessPoolExecutor() as pool:
        for name, noise in {**HELD, **EXCEEDED}.items():
            falls = pool.map(partial(deepest, noise), range(FRESH, FRESH + 1000), chunksize=50)
            print(f"{name}: {sum(fall >= THRESHOLDS[0.05] for fall in falls) / 1000:.1%}")


def print_delays() -> None:
    """Print the median delay of 200 hacked runs, by kind of noise and by slope."""
    for name, noise in NOISES.items():
        for slope in SLOPES:
            delays = [delay(seed, slope, noise) for seed in range(FRESH, FRESH + 200)]
            missed = sum(map(math.isinf, delays))
            print(f"{name}, {slope} a step: median {median(delays):.0f} steps, {missed} of 200 missed")


def drawing() -> matplotlib.figure.Figure:
    """Return a picture of a clean and of a hacked run, with the alarm."""
    kinds = {
        "a clean run: both rise": run(FRESH, USUAL, learned, learned, 240),
        "a hacked run: the watched metric falls from step 200 on": hacked(FRESH, SLOPES[0], USUAL, 200, 240),
    }
    figure = matplotlib.figure.Figure(figsize=(10, 4), layout="constrained")
    figure.suptitle("Simulated curves, in standard deviations of their noise: no training run")
    for axes, (title, curves) in zip(figure.subplots(1, 2, sharey=True), kinds.items(), strict=True):
        for curve, label in zip(curves, ("reward", "watched metric"), strict=True):
            axes.plot(curve, label=label, linewidth=1)
        if (step := alarm(curves)) is not None:
            axes.axvline(step, color="black", linestyle="--", label=f"alarm at step {step}")
        axes.set(title=title, xlabel="step")
        axes.legend()
    return figure


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("calibrate")
    commands.add_parser("rates")
    commands.add_parser("delays")
    commands.add_parser("draw").add_argument("file")
    given = parser.parse_args()
    if given.command == "draw":
        drawing().savefig(given.file, dpi=110, metadata={"Software": None})
    else:
        {"calibrate": print_thresholds, "rates": print_rates, "delays": print_delays}[given.command]()


if __name__ == "__main__":
    main()
