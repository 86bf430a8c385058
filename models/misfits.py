"""What is said of weights that cannot be loaded: in one line, which they are and why."""

import re
from pathlib import Path

import torch
from safetensors.torch import load_file


def unfit(missing: list[str], unknown: list[str], wrong: list[str], most: int = 3) -> str:
    """In one line, which weights don't fit: the first few of each kind, and how many there are."""
    kinds = {"missing": missing, "unknown": unknown, "of another shape": wrong}
    lists = (
        f"{len(names)} {kind} ({', '.join(names[:most])}{', …' if len(names) > most else ''})"
        for kind, names in kinds.items()
        if names
    )
    return f"weights do not fit: {'; '.join(lists)}"


def misfits(message: str) -> str:
    """torch's account of weights that don't fit a network, shortened."""
    said = {
        kind: [
            name
            for line in message.splitlines()
            if line.strip().startswith(kind)
            for name in re.findall(r'"([^"]+)"', line)
        ]
        for kind in ("Missing", "Unexpected")
    }
    shape = r"torch\.Size\((.*?)\)"
    mismatch = rf"size mismatch for (\S+): .*?{shape} from checkpoint, .*? model is {shape}"
    wrong = [f"{name}: {its} in place of {ours}" for name, its, ours in re.findall(mismatch, message)]
    return unfit(said["Missing"], said["Unexpected"], wrong)


def unreadable(path: Path) -> str:
    """Why *path* holds no weights by name; empty where it does."""
    try:
        if path.suffix == ".safetensors":
            read: object = load_file(path)
        else:
            read = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as exc:  # torch and safetensors raise many kinds for a broken file
        if "Weights only load failed" in str(exc):
            return "holds something else than tensors; that is not unpickled, since it can run code"
        return f"broken or truncated ({' '.join(str(exc).split())[:100] or type(exc).__name__})"
    return "" if isinstance(read, dict) else "holds no weights by name"
