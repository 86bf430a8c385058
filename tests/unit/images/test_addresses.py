"""Which addresses may be connected to."""

import pytest

from service.images.fetcher import is_public

PUBLIC = ["93.184.215.14", "8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "2002:808:808::1"]

REFUSED = {
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12:3456::1"],
    "link-local": ["169.254.0.1", "fe80::1", "fe80::1%eth0"],
    "shared by a provider's customers": ["100.64.0.1", "100.127.255.255"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "100::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "segment routing": ["5f00::1"],
    "site-local": ["fec0::1"],
    "a cloud's metadata": [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "fd00:ec2::254",
        "168.63.129.16",
    ],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:168.63.129.16"],
    "compatible": ["::127.0.0.1", "::10.0.0.1"],
    "translated": ["64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"],
    "tunnelled": ["2002:7f00:1::1", "2002:a9fe:a9fe::", "2001:0:7f00:1::1"],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet_are_public(address):
    """In any form."""
    assert is_public(address)


@pytest.mark.parametrize("address", [one for some in REFUSED.values() for one in some])
def test_no_other_address_is_public(address):
    """Nor one that carries such an address."""
    assert not is_public(address)
