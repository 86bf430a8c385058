"""
`python -m tests.process.real_clients.checkouts FOLDER`: call trainers' own reward modules.

Checkouts of the trainers lie in FOLDER.  Each module is read as it is there, and only the address in it, or
the table of rewards that our page has people extend, is changed.  It scores the demo's pictures
with their prompts and with wrong ones, against the service with the demo's models.  Ends with status 1 if a
function raises, or does not prefer the right prompts.
"""

import asyncio
import base64
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Queue
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from PIL import Image

from demo.process import SERVICE, free_port, running, url, wait_until_ready
from scoregate.trainers.flow_grpo import factory

SAMPLES = Path(__file__).parents[3] / "demo" / "samples"
LOOPBACK = re.compile(r"http://(?:127\.0\.0\.1|localhost|10\.\d+\.\d+\.\d+):\d+(?=[\"'])")
TABLE = "score_functions = {"
WITHOUT_PROMPT = {"deqa_score_remote"}  # functions that send pictures alone
SHARE = 0.7  # of the pictures whose right prompt has the higher score
SIDE = 256

Scores = Sequence[float]
Check = tuple[str, Callable[[list[dict[str, Any]], list[str]], Scores]]


class Ports:
    """Where the service listens: the public API, the dialects, pickles."""

    def __init__(self) -> None:
        self.api, self.dialects, self.pickles = (free_port(0) for _ in range(3))


def module(file: Path, address: str, **changes: str) -> ModuleType:
    """A trainer's file with another address and *changes* of its text, run as a module."""
    made = ModuleType(file.stem)
    sys.modules[file.stem] = made
    text = LOOPBACK.sub(address, file.read_text("utf-8"))
    for before, after in changes.items():
        text = text.replace(before, after)
    exec(compile(text, str(file), "exec"), made.__dict__)
    return made


def pixels(samples: Sequence[dict[str, Any]]) -> np.ndarray[Any, Any]:
    """uint8 of shape (pictures, height, width, 3)."""
    images = (Image.open(SAMPLES / sample["file"]).convert("RGB") for sample in samples)
    return np.stack([np.asarray(image.resize((SIDE, SIDE))) for image in images])


def tensor(samples: Sequence[dict[str, Any]]) -> torch.Tensor:
    """Floats from 0 to 1 of shape (pictures, 3, height, width)."""
    return torch.from_numpy(pixels(samples)).permute(0, 3, 1, 2).float() / 255


def pictures(samples: Sequence[dict[str, Any]]) -> list[Image.Image]:
    """PIL's."""
    return [Image.fromarray(image) for image in pixels(samples)]


def metadata(samples: Sequence[dict[str, Any]], prompts: Sequence[str]) -> list[dict[str, Any]]:
    """GenEval's, of the prompts that are asked for."""
    return [
        {**sample["geneval"]["right" if prompt == sample["right"] else "wrong"], "prompt": prompt}
        for sample, prompt in zip(samples, prompts, strict=True)
    ]


def flow_grpo(folder: Path, ports: Ports) -> Iterator[Check]:
    """Its functions that send pickles with NumPy arrays, and its table of rewards with ours in it."""
    rewards = module(folder / "flow_grpo" / "rewards.py", url(ports.pickles))
    more = {"deqa_score_remote": (), "geneval_score": (False,), "unifiedreward_score_remote": ()}
    for name, last in more.items():
        function = getattr(rewards, name)
        yield name, lambda s, p, f=function, last=last: f("cpu")(tensor(s), p, metadata(s, p), *last)[0]
    yield from diffusion_nft(folder, ports)


def diffusion_nft(folder: Path, ports: Ports) -> Iterator[Check]:
    """The table of rewards that flow_grpo and it have, with ours in it."""
    ours = {TABLE: f'{TABLE} "vqascore": factory("vqascore", base_url="{url(ports.api)}"),'}
    rewards = module(folder / "flow_grpo" / "rewards.py", "", **ours)
    rewards.factory = factory
    table = {"vqascore": 1.0}
    yield (
        "multi_score",
        lambda s, p: rewards.multi_score("cpu", table)(tensor(s), p, metadata(s, p))[0]["avg"],
    )


def ddpo(folder: Path, ports: Ports) -> Iterator[Check]:
    """The ancestor of the pickles."""
    rewards = module(folder / "ddpo_pytorch" / "rewards.py", url(ports.pickles))
    yield "llava_bertscore", lambda s, p: rewards.llava_bertscore()(tensor(s), p, [{}] * len(p))[0]


def deepgen_rl(folder: Path, ports: Ports) -> Iterator[Check]:
    """Pickles with lists; the addresses are settings, which are in the file's defaults."""
    file = folder / "deepgen_rl" / "reward_evaluator" / "reward_evaluator.py"
    client = module(file, url(ports.pickles))
    addresses = {"pickscore": "", "gen_eval": "geneval"}
    client.SCORER_URLS.update({name: f"{url(ports.pickles)}/{path}" for name, path in addresses.items()})

    def evaluate(service: str, samples: list[dict[str, Any]], prompts: list[str]) -> Scores:
        given = (
            {"meta_datas": metadata(samples, prompts), "only_strict": False} if service == "gen_eval" else {}
        )
        answer = client.RewardEvaluatorClient().evaluate(service, pictures(samples), prompts, given)
        scores: Scores = answer["scores"] if isinstance(answer, dict) else answer
        return scores

    for name in addresses:
        yield name, lambda s, p, name=name: evaluate(name, s, p)


def verl_omni(folder: Path, ports: Ports) -> Iterator[Check]:
    """One coroutine for each picture."""
    client = module(folder / "verl_omni" / "utils" / "reward_score" / "http_scorer_client.py", "")

    async def score(samples: list[dict[str, Any]], prompts: list[str]) -> Scores:
        calls = (
            client.compute_score(image, prompt, url(ports.pickles))
            for image, prompt in zip((tensor(samples) * 255).to(torch.uint8), prompts, strict=True)
        )
        try:
            return [answer["score"] for answer in await asyncio.gather(*calls)]
        finally:
            if session := getattr(client.compute_score, "_session", None):
                await session.close()

    yield "compute_score", lambda s, p: asyncio.run(score(s, p))


def unirl(folder: Path, ports: Ports) -> Iterator[Check]:
    """Its backend for a remote reward service."""
    sys.path.insert(0, str(folder))
    remote = importlib.import_module("unirl.reward.remote")
    reward, primitives = (importlib.import_module(f"unirl.types.{name}") for name in ("reward", "primitives"))

    def compute(samples: list[dict[str, Any]], prompts: list[str]) -> Scores:
        spec = remote.RemoteRewardSpec(base_url=f"{url(ports.dialects)}/unirl", required_rewards=["vqascore"])
        backend = remote.RemoteRewardBackend(config=spec, base_device="cpu")
        request = reward.RewardRequest(
            primitives={"text": primitives.Texts(texts=prompts)},
            generated={"image": primitives.Images(pixels=tensor(samples))},
        )
        scores: Scores = backend.compute_rewards(request).component_rewards["vqascore"]
        return scores

    yield "RemoteRewardBackend", compute


def flow_factory(folder: Path, ports: Ports) -> Iterator[Check]:
    """Its remote reward, through its loader and its buffer."""
    sys.path.insert(0, str(folder / "src"))
    accelerate = importlib.import_module("accelerate")
    hparams, rewards, kinds = (
        importlib.import_module(f"flow_factory.{name}") for name in ("hparams", "rewards", "samples")
    )
    entry = {
        "name": "vqascore",
        "reward_model": "flow_factory.rewards.my_reward_remote.RemotePointwiseRewardModel",
        "server_url": url(ports.dialects),
        "batch_size": 16,
    }

    def finalized(samples: list[dict[str, Any]], prompts: list[str]) -> Scores:
        arguments = hparams.MultiRewardArguments.from_dict([dict(entry)])
        accelerator = accelerate.Accelerator(cpu=True)
        loader = rewards.MultiRewardLoader(reward_args=arguments, accelerator=accelerator).load()
        configs = {each.name: each for each in arguments}
        models = loader.get_training_reward_models()
        processor = rewards.RewardProcessor(
            accelerator, models, reward_configs=configs, group_on_same_rank=True, verbose=False
        )
        buffer = rewards.RewardBuffer(processor, group_size=1)
        buffer.clear()
        images = zip(pictures(samples), prompts, strict=True)
        buffer.add_samples([kinds.T2ISample(prompt=prompt, image=image) for image, prompt in images])
        found: Scores = buffer.finalize()["vqascore"].tolist()
        buffer.shutdown()
        return found

    yield "RemotePointwiseRewardModel", finalized


def cosmos_rl(folder: Path, ports: Ports) -> Iterator[Check]:
    """
    Its calculator of remote rewards, which enqueues and pulls.  It sends videos as latents.

    Its packages are imported without their `__init__`, which import every engine of inference and training.
    """
    for name in ("", ".dispatcher", ".dispatcher.data", ".dispatcher.data.packer", ".policy", ".reward"):
        package = ModuleType(f"cosmos_rl{name}")
        package.__path__ = [str(folder.joinpath("cosmos_rl", *name.split(".")))]
        sys.modules[package.__name__] = package
    package = sys.modules["cosmos_rl.dispatcher.data.packer"]
    package.__dict__["BaseDataPacker"] = object  # the type of an argument that is not used
    sys.modules["cosmos_rl.policy.model"] = None  # type: ignore[assignment]  # of the VAE, which it may lack
    for name in ("enqueue", "fetch"):
        path = "pull" if name == "fetch" else name
        os.environ[f"REMOTE_REWARD_{name.upper()}_URL"] = f"{url(ports.dialects)}/api/reward/{path}"
    calculators, config, schema = (
        importlib.import_module(f"cosmos_rl.{name}")
        for name in ("reward.remote_calculator", "policy.config", "dispatcher.data.schema")
    )
    reward = config.RewardFunctionConfig(name="vqascore", weight=1.0, score_key="vqascore")
    remote = SimpleNamespace(remote_reward=config.RemoteRewardConfig(reward_fns=[reward]))
    calculator = calculators.RemoteRewardCalculator()
    calculator.setup(SimpleNamespace(train=SimpleNamespace(train_policy=remote), validation=remote))

    def compute(samples: list[dict[str, Any]], prompts: list[str]) -> Scores:
        payloads = [
            schema.RLPayload(
                prompt={"prompt": prompt}, prompt_idx=number, completions=image[None], extra_info={}
            )
            for number, (image, prompt) in enumerate(zip(tensor(samples), prompts, strict=True))
        ]
        uuids: Queue[str] = Queue()
        uuids.put(calculator.compute_rewards(payloads, False, 0))
        return [payload.rewards[0] for payload in calculator.get_results(uuids)[0]]

    yield "RemoteRewardCalculator", compute


def labels(samples: Sequence[dict[str, Any]]) -> list[str]:
    """Pictures as data URIs, as the labels of a dataset hold them."""
    found = []
    for image in pictures(samples):
        image.save(file := io.BytesIO(), "PNG")
        found.append(f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}")
    return found


class Letters:
    """A tokenizer and an engine for OpenRLHF's executor: a token is a character, and *said* is generated."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __call__(self, text: str, **_: Any) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.tensor([[ord(letter) for letter in text]])}

    def decode(self, tokens: list[int], **_: Any) -> str:
        """The text of the tokens."""
        return "".join(map(chr, tokens))

    async def generate(self, *_: Any, **__: Any) -> Any:
        """What vLLM returns."""
        tokens = [ord(letter) for letter in self.said]
        return SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=tokens, finish_reason="stop", logprobs=None)]
        )


def openrlhf(folder: Path, ports: Ports) -> Iterator[Check]:
    """Its executor of a single turn, with a tokenizer and an engine of ours; the caption is the response."""
    sys.path.insert(0, str(folder))
    agent = importlib.import_module("openrlhf.utils.agent")
    executor = agent.SingleTurnAgentExecutor(f"{url(ports.dialects)}/get_reward")
    parameters = SimpleNamespace(max_tokens=1000, logprobs=None)

    async def score(samples: list[dict[str, Any]], prompts: list[str]) -> Scores:
        runs = []
        for prompt, label in zip(prompts, labels(samples), strict=True):
            letters = Letters(prompt)
            runs.append(executor.execute("Describe it: ", label, parameters, 2000, letters, letters))
        return [run["reward"][0] for run in await asyncio.gather(*runs)]

    yield "SingleTurnAgentExecutor", lambda s, p: asyncio.run(score(s, p))


def slime(folder: Path, ports: Ports) -> Iterator[Check]:
    """Its remote reward model; the caption is the response."""
    sys.path.insert(0, str(folder))
    hub = importlib.import_module("slime.rollout.rm_hub")
    kinds = importlib.import_module("slime.utils.types")
    args = SimpleNamespace(
        rm_type="remote_rm", rm_url=f"{url(ports.dialects)}/remote_rm", custom_rm_path=None
    )

    async def score(samples: list[dict[str, Any]], prompts: list[str]) -> Scores:
        given = [
            kinds.Sample(prompt="Describe it: ", response=prompt, label=label)
            for prompt, label in zip(prompts, labels(samples), strict=True)
        ]
        found: Scores = await hub.batched_async_rm(args, given)
        await hub._get_shared_session().close()
        return found

    yield "remote_rm", lambda s, p: asyncio.run(score(s, p))


TRAINERS = {
    "flow_grpo": flow_grpo,
    "DiffusionNFT": diffusion_nft,
    "ddpo-pytorch": ddpo,
    "deepgen_rl": deepgen_rl,
    "verl-omni": verl_omni,
    "UniRL": unirl,
    "Flow-Factory": flow_factory,
    "cosmos-rl": cosmos_rl,
    "OpenRLHF": openrlhf,
    "slime": slime,
}


def outcome(check: Check, samples: list[dict[str, Any]]) -> tuple[bool, str]:
    """Whether a function prefers the right prompts, in words."""
    name, function = check
    try:
        right, wrong = (
            list(function(samples, [one[kind] for one in samples])) for kind in ("right", "wrong")
        )
    except Exception as exc:
        return False, f"{type(exc).__name__}: {str(exc)[:200]}"
    if len(right) != len(samples) or len(wrong) != len(samples):
        return False, f"{len(right)} and {len(wrong)} scores of {len(samples)} pictures"
    if name in WITHOUT_PROMPT:
        return right == wrong, "the same with any prompt"
    better = sum(a > b for a, b in zip(right, wrong, strict=True))
    return better >= SHARE * len(samples), f"right above wrong {better} of {len(samples)}"


def main(folder: Path) -> int:
    """Call what lies in *folder*, and print a line for each function."""
    samples = [one for one in json.loads((SAMPLES / "prompts.json").read_text("utf-8")) if one.get("geneval")]
    ports, failed = Ports(), 0
    with tempfile.TemporaryDirectory() as scratch:
        settings = {
            "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{scratch}/questions.sqlite3",
            "SCOREGATE_MODELS__AESTHETIC__FAMILY": "fake",  # no demo model judges pictures alone
            "SCOREGATE_MODELS__AESTHETIC__ROLE": "aesthetic",
            "SCOREGATE_METRICS__AESTHETIC__AESTHETIC": "aesthetic",
            "SCOREGATE_DIALECTS__ENABLED": '["flow_factory", "unirl", "cosmos_rl", "openrlhf", "slime"]',
            "SCOREGATE_DIALECTS__PORT": str(ports.dialects),
            "SCOREGATE_DIALECTS__PICKLE_PORT": str(ports.pickles),
        }
        with running(ports.api, SERVICE, Path(scratch) / "log", **settings) as process:
            wait_until_ready(process, ports.api)
            for name, checks in TRAINERS.items():
                if not (folder / name).is_dir():
                    print(f"{name:14} not in {folder}")
                    continue
                command = ["git", "-C", str(folder / name), "log", "-1", "--format=%h %cs"]
                commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
                for check in checks(folder / name, ports):
                    well, words = outcome(check, samples)
                    failed += not well
                    print(
                        f"{name:14} {commit:21} {check[0]:28} {'' if well else 'FAILED '}{words}", flush=True
                    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
