"""A schema registry with Confluent's API: Apicurio, from Maven's artifacts, run by the machine's Java."""

from pathlib import Path

import httpx

from devstack import jars
from devstack.engine import Instance
from devstack.server import Kind, NotReadyError, Say, Server, require_listening


class Registry:
    """A schema registry whose schemas survive a kill. It checks compatibility only if that is configured."""

    kind: Kind = "registry"
    user = ""
    ports = 1
    proxies = 0
    timeout = 120.0

    def install(self, say: Say) -> Path:
        """Fetch and unpack the archive."""
        jars.java("the schema registry", say)
        return jars.resolve(jars.POMS / "registry.xml", say)

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Build the command line; there is no configuration file."""
        (program,) = installation.glob("*-runner.jar")
        properties = {
            "java.io.tmpdir": instance.folder,  # a killed registry leaves temporary folders
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": instance.ports[0],
            # Apicurio's "in memory" storage is an H2 database; with this URL it writes each change to a file at once.
            "REGISTRY_DATASOURCE_URL": f"jdbc:h2:file:{instance.data}/schemas;WRITE_DELAY=0",
            "quarkus.datasource.jdbc.initial-size": 1,
            "quarkus.datasource.jdbc.min-size": 1,
        }
        java = [jars.java("the schema registry"), "-Xmx192m"]
        return [*java, *(f"-D{name}={value}" for name, value in properties.items()), "-jar", str(program)]

    async def ping(self, server: Server) -> None:
        """Request the schema types that the registry supports."""
        await require_listening(server)  # first, because making a client loads the CAs, which takes 30 ms of CPU
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                (await client.get(f"{server.url.rstrip('/')}/schemas/types")).raise_for_status()
        except httpx.HTTPError as error:
            raise NotReadyError(str(error) or type(error).__name__) from error
