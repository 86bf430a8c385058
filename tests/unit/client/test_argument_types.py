"""Arguments of the wrong type are `TypeError`, in the words of the call, before anything is sent."""

import asyncio
import sys
from inspect import signature

import numpy as np
import pytest

from scoregate import Accept, AsyncClient, Cascade, Client, Frames, Item, TimeSpan, aload, load
from scoregate.items import Files
from scoregate.trainers import Reward
from scoregate.trainers.images import items_of, size_of

ADDRESS = "http://127.0.0.1:1"  # no call may reach it


@pytest.mark.parametrize(
    "call",
    [
        lambda client, names: client.score("a.png", "a dog", names),
        lambda client, names: client.matrix(["a.png"], ["a dog"], names),
        lambda client, names: client.rank("a dog", ["a.png"], metric=names),
        lambda client, names: client.compare("a dog", ["a.png", "b.png"], metric=names),
    ],
)
def test_a_list_of_metrics_where_one_is_taken_names_the_methods_that_take_several(call):
    """`score`, `matrix`, `rank` and `compare` take one metric."""
    with Client(ADDRESS) as client, pytest.raises(TypeError, match=r"'dsg'.*score_items and score_many"):
        call(client, ["vqascore", "dsg"])


@pytest.mark.parametrize("method", ["rank", "compare"])
def test_pictures_in_the_place_of_the_prompt_are_refused_with_the_order(method):
    """A swap is no error of a picture that cannot be read."""
    with (
        Client(ADDRESS) as client,
        pytest.raises(TypeError, match="the prompt comes first, then the pictures"),
    ):
        getattr(client, method)(["a.png", "b.png"], "a dog")


def test_metrics_that_are_no_names_are_refused():
    """A list in a list is the usual slip."""
    with Client(ADDRESS) as client, pytest.raises(TypeError, match="a name or a list of names"):
        client.score_items([("a.png", "a dog")], [["vqascore"]])


def test_a_reward_of_a_list_in_the_place_of_one_metric_names_the_argument():
    """`Reward(metrics=...)` takes several."""
    with pytest.raises(TypeError, match=r"not \['vqascore'\]; metrics= takes several"):
        Reward(["vqascore"])


SEVERAL = {
    "a list": ["a.png", "b.png"],
    "a list of one": ["a.png"],
    "a tuple": ("a.png", "b.png"),
    "an array of several": np.zeros((2, 8, 8, 3), np.uint8),
}
WAYS = r"one image, not [12]: score_many, rank and matrix take several; .* scoregate\.Frames\(\[\.\.\.\]\)"


@pytest.mark.parametrize("several", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize(
    "call",
    [
        lambda client, several: client.score(several, "a dog"),
        lambda client, several: client.decide(several, "a dog"),
        lambda client, several: client.score_items([(several, "a dog")]),
        lambda client, several: list(client.score_many([(several, "a dog")])),
        lambda client, several: client.matrix([several], ["a dog"]),
        lambda client, several: client.rank("a dog", [several]),
        lambda client, several: client.compare("a dog", [several, "c.png"]),
        lambda client, several: client.compare("a dog", ["a.png", "b.png"], source=several),
        lambda client, several: Item(prompt="a dog", image=several),
        lambda client, several: Item(prompt="a dog", image="a.png", source=several),
        lambda client, several: Item(prompt="a dog", image="a.png", references=[several]),
    ],
)
def test_several_images_where_one_is_taken_name_the_ways_to_give_several(call, several):
    """They would get one score together, in silence, where one for each is meant."""
    with Client(ADDRESS) as client, pytest.raises(TypeError, match=WAYS):
        call(client, several)


@pytest.mark.parametrize("several", [["a.png", "b.png"], [np.zeros((8, 8, 3), np.uint8)]])
def test_a_list_in_a_batch_of_rewards_is_refused_likewise(several):
    """A batch has an image for each prompt, and a list in it may be a group as well as frames."""
    with pytest.raises(TypeError, match=WAYS):
        Reward()([several], ["a dog"])


def test_several_images_of_an_asynchronous_call_are_refused_likewise():
    """Its methods are those of `Client`."""
    with pytest.raises(TypeError, match=WAYS):
        asyncio.run(AsyncClient(ADDRESS).score(["a.png", "b.png"], "a dog"))


@pytest.mark.parametrize("wrong", ["film.mp4", b"film", 5])
def test_frames_of_what_is_no_list_are_refused(wrong):
    """A video file is an image by itself."""
    with pytest.raises(TypeError, match="Frames takes a list of images, not"):
        Frames(wrong)


def test_frames_are_taken_wherever_an_image_is():
    """All of them are sent, in order, as the list of the wire format."""
    frames = Frames([b"first", b"second"])
    files, places = Files(), [{"part": "image0"}, {"part": "image1"}]

    assert places == files.item(Item(prompt="a dog", image=frames), "/items/0")["image"]
    assert [[places], {}] == [*files.images([frames], strict=True)]
    [item] = items_of([frames], ["a dog"], None)
    assert ([b"first", b"second"], 11) == (item.image.frames, size_of(item))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda client: client.score("a.png", "a dog", metrics="dsg"),
            r"Client\.score\(\) got an unexpected keyword argument 'metrics': metric= is one name;"
            " score_items and score_many take several",
        ),
        (
            lambda client: client.score_items([("a.png", "a dog")], metric="dsg"),
            r"Client\.score_items\(\) got .* 'metric'; did you mean metrics\?",
        ),
        (
            lambda client: client.score_many([], metric="dsg"),
            r"Client\.score_many\(\) got .* 'metric'; did you mean metrics\?",
        ),
        (
            lambda client: client.stream([], option={}),
            r"Client\.stream\(\) got .* 'option'; did you mean options\?",
        ),
        (lambda client: client.rank("a dog"), r"^Client\.rank\(\) missing .* 'images'$"),
        (
            lambda client: client.rank("a dog", ["a.png"], top_k=3, threshold=0.5),
            r"^Client\.rank\(\) got .* 'top_k': rank takes accept=Accept\(top_k=3, threshold=0\.5\)$",
        ),
        (
            lambda client: client.rank("a dog", ["a.png"], keep=2),
            r"^Client\.rank\(\) got .* 'keep': rank takes cascade=Cascade\(keep=2\)$",
        ),
        (
            lambda client: client.compare("a dog", ["a.png"], schedule="all"),
            r"^Client\.compare\(\) got .* 'schedule': compare takes pairs=Pairing\(schedule='all'\)$",
        ),
        (
            lambda client: client.score("film.mp4", "a dog", fps=1),
            r"^Client\.score\(\) got .* 'fps': score takes span=TimeSpan\(fps=1\)$",
        ),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_right_one(call, said):
    """With the class that the caller has, not the one that does its work."""
    with Client(ADDRESS) as client, pytest.raises(TypeError, match=said):
        call(client)


@pytest.mark.parametrize(
    ("method", "arguments", "keyword", "right"),
    [
        ("score", ["a.png", "a dog"], "metrics", ": metric= is one name; score_items and score_many"),
        ("score_items", [[("a.png", "a dog")]], "metric", "; did you mean metrics?"),
        ("stream", [[]], "option", "; did you mean options?"),
        ("score_many", [[]], "metric", "; did you mean metrics?"),
        ("rank", ["a dog", ["a.png"]], "top_k", "'top_k': rank takes accept=Accept(top_k='dsg')"),
    ],
)
def test_a_wrong_keyword_of_the_asynchronous_client_is_answered_likewise(method, arguments, keyword, right):
    """With its own class, and each method is still a coroutine function or returns a generator."""
    method = getattr(AsyncClient(ADDRESS), method)

    async def call():
        made = method(*arguments, **{keyword: "dsg"})
        return await made if asyncio.iscoroutine(made) else [each async for each in made]

    with pytest.raises(TypeError, match=r"^AsyncClient\.\w+\(\) got an unexpected keyword") as caught:
        asyncio.run(call())
    assert right in str(caught.value)
    assert 1 == str(caught.value).count("AsyncClient")


def test_the_methods_of_the_asynchronous_client_are_coroutine_functions():
    """As they are for a mock with its specification."""
    assert asyncio.iscoroutinefunction(AsyncClient.score)
    assert "metric" in signature(AsyncClient.score).parameters


@pytest.mark.parametrize(
    ("keyword", "said"),
    [
        ("metric", r"load\(\) got an unexpected keyword argument 'metric'; did you mean metrics\?"),
        ("timeout", r"'timeout'; did you mean timeout_s\?"),
        ("base_url", r"load\(\) got an unexpected keyword argument 'base_url'$"),
    ],
)
@pytest.mark.parametrize("loading", [load, aload])
def test_a_wrong_keyword_of_load_is_refused_before_a_model_is_loaded(loading, keyword, said, monkeypatch):
    """Nothing of the server is imported either."""
    monkeypatch.setitem(sys.modules, "scoregate_server", None)

    with pytest.raises(TypeError, match=said):
        loading("demo", **{keyword: "vqascore"})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Client(adress=ADDRESS), r"^Client\(\) got .* 'adress'$"),
        (lambda: Client(ADDRESS, timeout=3), r"^Client\(\) got .* 'timeout'; did you mean timeout_s\?"),
        (lambda: AsyncClient(ADDRESS, apikey=""), r"^AsyncClient\(\) .* 'apikey'; did you mean api_key\?"),
        (lambda: Item(promt="a dog", image="a.png"), r"^Item\(\) .* 'promt'; did you mean prompt\?"),
        (lambda: Accept(treshold=0.5), r"^Accept\(\) .* 'treshold'; did you mean threshold\?"),
        (lambda: Cascade("clipscore", kep=1), r"^Cascade\(\) .* 'kep'; did you mean keep\?"),
        (lambda: TimeSpan(begin=1), r"^TimeSpan\(\) .* 'begin'"),
        (lambda: Reward("vqascore", metric="dsg"), "multiple values for argument 'metric'"),
        (lambda: Reward(weight={}), r"^Reward\(\) .* 'weight'; did you mean weights\?"),
    ],
)
def test_a_wrong_keyword_of_a_constructor_is_answered_with_the_right_one(call, said):
    """As that of a method."""
    with pytest.raises(TypeError, match=said):
        call()


def test_the_keywords_of_a_constructor_are_shown_by_help():
    """As without the check."""
    assert {"base_url", "timeout_s"} <= signature(Client).parameters.keys()
    assert {"prompt", "image"} <= signature(Item).parameters.keys()


def test_frames_need_an_image():
    """A scene without one has no score."""
    with pytest.raises(ValueError, match="needs an image at least"):
        Frames([])


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.matrix("a.png", ["a dog"]),
        lambda client: client.matrix(["a.png"], "a dog"),
        lambda client: client.rank("a dog", "a.png"),
        lambda client: client.compare("a dog", b"a picture"),
        lambda client: client.rank("a dog", 5),
    ],
)
def test_a_single_value_in_the_place_of_several_is_refused(call):
    """Its letters would be as many pictures or prompts."""
    with Client(ADDRESS) as client, pytest.raises(TypeError, match=r"(images|prompts) are a list, not "):
        call(client)


@pytest.mark.parametrize(
    ("names", "more", "said"),
    [
        ([["a/b"]], {}, r"models are named one by one, as load\(\"a\", \"b\"\), and not by \['a/b'\]"),
        (["demo"], {"devices": 0}, 'devices are names such as "cuda:1", not 0'),
    ],
)
def test_wrong_types_of_load_are_refused_with_the_right_ones(names, more, said):
    """Before anything is imported."""
    with pytest.raises(TypeError, match=said):
        load(*names, **more)
