"""Pickles of callers that hold tensors."""

import pickle

import pytest
import torch

from service.core.errors import Malformed
from service.web.dialects.pickled.reader import read_pickle


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_tensors_are_refused_with_what_to_send(protocol):
    with pytest.raises(Malformed, match="JPEG"):
        read_pickle(pickle.dumps({"images": [b"x"], "prompts": torch.zeros(3)}, protocol), 2**26)
