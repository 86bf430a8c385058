"""Which addresses may be connected to: those of the public internet."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = IPv6Network("::/96")

# What the standard library takes for public, in some of its versions.
OURS: list[IPv4Network | IPv6Network] = [
    IPv4Network("168.63.129.16/32"),  # answers the machines of a cloud
    IPv4Network("192.0.0.0/24"),  # between networks of one provider
    IPv4Network("192.88.99.0/24"),  # relays into tunnels
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("5f00::/16"),  # segment routing, within one network
    IPv6Network("fec0::/10"),  # site-local
]


def is_public(text: str) -> bool:
    """
    Whether *text* is an address of the public internet.

    Private, loopback, link-local, multicast, reserved and unspecified ones are not, nor those of a cloud's
    metadata, nor IPv6 addresses that carry any of these.
    """
    return all(_is_public(address) for address in carried(ip_address(text)))


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in OURS)
    )


def carried(address: Address) -> list[Address]:
    """The address, or the IPv4 address that stands for it, and those that a tunnel would lead to."""
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
