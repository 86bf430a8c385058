"""Checkpoints in transformers' layout that something is wrong with."""


def no_config(directory):
    """Nothing says what it is."""
    (directory / "config.json").unlink()


def no_weights(directory):
    """The weights are not there."""
    (directory / "model.safetensors").unlink()


def pickled_weights(directory):
    """The weights have the name of a pickle."""
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")


def cut_weights(directory):
    """The weights end early."""
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


SPOILED = {
    no_config: r"config\.json: missing",
    no_weights: r"no weights found \(looked for model\.safetensors",
    pickled_weights: r"pytorch_model\.bin: weights are read from safetensors only",
    cut_weights: r"model\.safetensors: cannot be (loaded|read)",
}
