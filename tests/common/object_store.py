"""A server with the API of S3, as a process on 127.0.0.1."""

import asyncio
from pathlib import Path

from common.waiting import eventually
from devstack import jars
from devstack.ports import HOST, free_ports
from devstack.process import Process, spawn

KEY, SECRET = "databus", "a-secret-of-the-tests"
REGION = "eu-central-1"


class ObjectStoreServer:
    """S3Proxy over a folder, in which each bucket is a folder."""

    def __init__(self, folder: Path) -> None:
        [port] = free_ports(1)
        self.url = f"http://{HOST}:{port}"
        self._folder = folder
        #: what programs need to use it
        self.environment = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
        self._process: Process | None = None

    def start(self) -> None:
        """Start it, also again."""
        buckets, properties = self._folder / "buckets", self._folder / "s3.properties"
        buckets.mkdir(exist_ok=True)
        properties.write_text(
            f"s3proxy.endpoint={self.url}\ns3proxy.authorization=aws-v2-or-v4\n"
            f"s3proxy.identity={KEY}\ns3proxy.credential={SECRET}\ns3proxy.ignore-unknown-headers=true\n"
            f"jclouds.provider=filesystem-nio2\njclouds.filesystem.basedir={buckets}\n"
            "jclouds.identity=any\njclouds.credential=any\n"
        )
        [jar] = jars.resolve(jars.POMS / "s3.xml").glob("*.jar")
        bound = ["/usr/bin/setpriv", "--pdeathsig", "KILL"]  # it ends with this process
        command = [*bound, jars.java("S3Proxy"), "-Xmx256m", "-jar", str(jar), "--properties", str(properties)]
        self._process = spawn(command, self._folder / "s3.log")

    async def wait(self) -> None:
        """Wait until it answers."""
        port = int(self.url.rpartition(":")[2])

        async def answers() -> bool:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                return False
            writer.close()
            return True

        await eventually(answers)

    def make_bucket(self, name: str) -> None:
        """Create a bucket."""
        (self._folder / "buckets" / name).mkdir(parents=True)

    def kill(self) -> None:
        """End it without notice."""
        if self._process:
            self._process.kill()
