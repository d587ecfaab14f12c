"""Logging in to each kind of server, with and without TLS, by every supported method; errors of a login."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.connections import session_on
from databus_binlog import AccessDenied, ServerUnavailable, Tls, TlsFailed
from databus_binlog.session import Session
from devstack.certificates import Authority


@pytest.fixture
async def account(admin: Session) -> AsyncIterator[str]:
    """The name of an account that the test may create; it is removed afterwards."""
    name = f"u_{secrets.token_hex(4)}"
    yield name
    await admin.query(f"DROP USER IF EXISTS {name}@'%'")


async def cipher(session: Session) -> str:
    """Return the cipher of the connection, "" if it is not encrypted."""
    [(_, value)] = await session.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    return value


# --- TLS


async def test_the_connection_is_encrypted_only_with_tls_settings(login, trusted):
    async with login() as session:
        assert not await cipher(session)
    async with login(tls=trusted) as session:
        assert await cipher(session)


async def test_a_server_certificate_that_is_not_trusted_is_an_error(login, trusted, tmp_path):
    unrelated = Authority(tmp_path)
    for tls, host, reason in (
        (Tls(ca=unrelated.ca), "127.0.0.1", "self-signed certificate"),
        (Tls(), "127.0.0.1", "self-signed certificate"),  # verified with the system's authorities
        (trusted, "localhost", "Hostname mismatch"),
    ):
        with pytest.raises(TlsFailed, match=f"certificate of {host} is not trusted: {reason}"):
            async with login(tls=tls, host=host):
                pass


async def test_a_server_certificate_is_verified_less_strictly_only_on_request(login, authority, tmp_path):
    async with login(tls=Tls(ca=authority.ca, verify="ca"), host="localhost") as session:
        assert await cipher(session)
    unrelated = Authority(tmp_path)
    with pytest.raises(TlsFailed, match="self-signed certificate"):
        async with login(tls=Tls(ca=unrelated.ca, verify="ca")):
            pass
    async with login(tls=Tls(ca=unrelated.ca, verify="none"), host="localhost") as session:
        assert await cipher(session)


async def test_an_expired_server_certificate_is_an_error(login, own, authority, trusted, admin):
    reload = "FLUSH SSL" if own.kind == "mariadb" else "ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR"
    authority.issue("server", days=-1)
    await admin.query(reload)
    try:
        with pytest.raises(TlsFailed, match="certificate has expired"):
            async with login(tls=trusted):
                pass
    finally:
        authority.issue("server")
        await admin.query(reload)
    async with login(tls=trusted) as session:
        assert await cipher(session)


async def test_an_account_that_requires_a_client_certificate_accepts_only_a_trusted_one(
    login, authority, trusted, admin, account, tmp_path
):
    await admin.query(f"CREATE USER {account}@'%' IDENTIFIED BY 'p' REQUIRE X509")
    certificate = authority.issue("client")
    async with login(tls=Tls(ca=authority.ca, certificate=certificate), user=account, password="p") as session:
        assert await cipher(session)
    for tls in (None, trusted):
        with pytest.raises(AccessDenied, match="TLS options if the server demands TLS"):
            async with login(tls=tls, user=account, password="p"):
                pass
    untrusted = Authority(tmp_path).issue("client")
    with pytest.raises(ServerUnavailable, match=f"trusts the client certificate {untrusted}"):
        async with login(tls=Tls(ca=authority.ca, certificate=untrusted), user=account, password="p"):
            pass


async def test_a_server_without_tls_is_an_error_if_tls_is_wanted(mariadb):
    async with session_on(mariadb) as session:
        if await session.query("SELECT 1 FROM DUAL WHERE @@have_ssl = 'YES'"):
            pytest.skip("this server has TLS")
    with pytest.raises(TlsFailed, match="no TLS connection to"):
        async with session_on(mariadb, tls=Tls(verify="none")):
            pass


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
@pytest.mark.parametrize("option", ["ca", "certificate"])
def test_the_error_of_an_unusable_certificate_file_names_the_file(tmp_path: Path, option, content):
    file = tmp_path / "file.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TlsFailed, match=f"{file}: (no PEM certificate|No such file)"):
        Tls(**{option: file}).context()


def test_a_missing_key_is_named(authority, tmp_path):
    with pytest.raises(TlsFailed, match=f"^{tmp_path}/key.pem: No such file"):
        Tls(certificate=authority.issue("client"), key=tmp_path / "key.pem").context()


def test_a_key_without_a_certificate_is_refused(tmp_path):
    with pytest.raises(TlsFailed, match=r"key\.pem: a client key needs a client certificate"):
        Tls(key=tmp_path / "key.pem").context()


# --- methods of authentication

METHODS = {
    "mariadb": ("mysql_native_password", "ed25519"),
    "mysql": ("caching_sha2_password", "sha256_password"),  # MySQL 9 has no mysql_native_password any more
}


@pytest.mark.parametrize("encrypted", [False, True])
async def test_every_method_of_authentication_works(login, own, trusted, admin, account, encrypted):
    tls, password = trusted if encrypted else None, "pä§s'wörd"
    using = "VIA {} USING PASSWORD(%s)" if own.kind == "mariadb" else "WITH {} BY %s"
    if own.kind == "mariadb":
        await admin.query("INSTALL SONAME 'auth_ed25519'")
    for method in METHODS[own.kind]:
        await admin.query(f"CREATE USER {account}@'%%' IDENTIFIED {using.format(method)}", (password,))
        for _ in range(2):  # the second time MySQL has the password's hash in its cache
            async with login(tls=tls, user=account, password=password) as session:
                assert await session.query("SELECT CURRENT_USER()") == [(f"{account}@%",)]
        with pytest.raises(AccessDenied, match="check user and password"):
            async with login(tls=tls, user=account, password="wrong"):
                pass
        await admin.query(f"DROP USER {account}@'%'")


@pytest.mark.parametrize("own", ["mariadb"], indirect=True)  # MySQL's package has no method that we do not support
async def test_an_unsupported_method_of_authentication_is_an_error(login, admin, account):
    await admin.query("INSTALL SONAME 'auth_pam'")
    await admin.query(f"CREATE USER {account}@'%' IDENTIFIED VIA pam")
    with pytest.raises(AccessDenied, match="logs in by a method that is not supported"):
        async with login(user=account, password="p"):
            pass
