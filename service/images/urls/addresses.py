"""The check that an address belongs to the public internet."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = IPv6Network("::/96")

# Networks that some versions of the standard library count as public.
NOT_PUBLIC: list[IPv4Network | IPv6Network] = [
    IPv4Network("168.63.129.16/32"),  # metadata of a cloud
    IPv4Network("192.0.0.0/24"),  # between networks of one provider
    IPv4Network("192.88.99.0/24"),  # relays into tunnels
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("5f00::/16"),  # segment routing, within one network
    IPv6Network("fec0::/10"),  # site-local
]


def is_public(text: str) -> bool:
    """
    Return True if *text* is an address of the public internet.

    False for private, loopback, link-local, multicast, reserved and unspecified addresses, for those of a
    cloud's metadata, and for IPv6 addresses that contain any of these.
    """
    return all(_is_public(address) for address in carried(ip_address(text)))


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in NOT_PUBLIC)
    )


def carried(address: Address) -> list[Address]:
    """Return the address, or the IPv4 address that it maps to, and the addresses that it tunnels to."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address in NAT64:
        return [IPv4Address(int(address) & 0xFFFF_FFFF)]
    found: list[Address] = [address]
    if address in COMPATIBLE:
        found.append(IPv4Address(int(address)))
    if address.sixtofour:
        found.append(address.sixtofour)
    if address.teredo:
        found += address.teredo
    return found
