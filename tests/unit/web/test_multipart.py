"""Requests whose pictures come as parts of a form."""

import pytest

from service.web.server.multipart import Form


def form(*parts_, boundary=b"b", charset=None, end=b"--"):
    """A request with parts written by hand: each its header lines and its bytes."""
    lines = (b"\r\n".join([b"--" + boundary, *headers, b"", data, b""]) for headers, data in parts_)
    kind = f"multipart/form-data; boundary={boundary.decode()}" + (f"; charset={charset}" if charset else "")
    content = b"".join(lines) + b"--" + boundary + end + b"\r\n"
    return {"content": content, "headers": {"Content-Type": kind}}


def named(name, *more, data=b"{}", options=b""):
    """One part by hand."""
    return [b'Content-Disposition: form-data; name="' + name + b'"' + options, *more], data


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_a_form_is_the_same_in_chunks_of_any_size(size):
    """Delimiters, headers and data may be cut anywhere."""
    image = bytes(range(256)) * 4 + b"\r\n--", b"\r\n\r\n--boundary"
    sent = form(
        named("größe".encode(), data=image[0], options=b'; filename="a;b.png"'),
        named(b"request", b"Content-Type: application/json; charset=UTF-8", data=b'{"a": 1}'),
        named(b"q", data=image[1], options=b"; filename=q"),
        boundary=b"boundary-of-32-characters-or-more",
    )
    content = b"\r\n" + sent["content"] + b"an epilogue"
    read = Form(sent["headers"]["Content-Type"], max_files=2)
    for start in range(0, len(content), size):
        read.feed(content[start : start + size])

    assert (b'{"a": 1}', {"größe": image[0], "q": image[1]}) == read.read()
