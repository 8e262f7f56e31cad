"""A certificate for 127.0.0.1 and localhost, signed by an authority made for one test."""

import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple


class Certificates(NamedTuple):
    """Two files: what a client trusts, and what a server shows (its key is in the same file)."""

    authority: Path
    server: Path


def make_certificates(folder: Path) -> Certificates:
    """Write both files into a folder; they are valid for a day."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    now, day = datetime.now(UTC), timedelta(days=1)
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority of a test")])
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def build(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(ca_name, subject, public, x509.random_serial_number())
        builder = builder.not_valid_before(now - day).not_valid_after(now + day)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        return builder.add_extension(authority, critical=False).add_extension(
            identifier, critical=False
        )

    ca = build(ca_name, ca_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    ca = ca.add_extension(usage, critical=True)
    names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
    leaf = build(name, key.public_key()).add_extension(
        x509.SubjectAlternativeName(names), critical=False
    )
    made = Certificates(folder / "authority.pem", folder / "server.pem")
    made.authority.write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    made.server.touch(mode=0o600)
    certificate = leaf.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM)
    made.server.write_bytes(certificate + private)
    return made


if __name__ == "__main__":
    make_certificates(Path(sys.argv[1]))
