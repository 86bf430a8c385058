"""A private authority, and the certificate of a server on this machine that it signed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from demo.process import HOST


@dataclass(frozen=True)
class Files:
    """PEM files: the authority's certificate, the server's, and the server's key."""

    ca: Path
    certificate: Path
    key: Path

    @property
    def redis_options(self) -> list[str]:
        """How a redis-server is told to use them on its TLS port, and to ask no client for one."""
        return [
            *("--tls-cert-file", str(self.certificate), "--tls-key-file", str(self.key)),
            *("--tls-ca-cert-file", str(self.ca), "--tls-auth-clients", "no"),
        ]


def signed(folder: Path, address: str = HOST) -> Files:
    """A new authority, and a certificate for *address*, in *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    files = Files(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = unsigned("an authority", "an authority", ca_key.public_key())
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    usage = x509.KeyUsage(*(name in (5, 6) for name in range(9)))  # it signs certificates and lists
    ca = ca.add_extension(usage, critical=True)
    ca = ca.add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
    server = unsigned("a server", "an authority", key.public_key())
    server = server.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    server = server.add_extension(issuer, critical=False)
    files.ca.write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    files.certificate.write_bytes(server.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def unsigned(subject: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    """What a certificate says, valid for an hour on either side of now."""
    now = datetime.now(UTC)
    names = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (subject, issuer))
    builder = x509.CertificateBuilder(*reversed(list(names)), key, x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
