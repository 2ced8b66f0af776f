"""A minimal HTTP/1.1 client, so that the client costs little of what a benchmark measures."""

import asyncio
from types import TracebackType
from typing import Self


class HTTPClient:
    """One connection to the loopback address that stays open."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.writer.close()

    async def get(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        return await self.exchange(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send JSON and return the status and the body of the answer."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return await self.exchange(head.encode() + body)

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send bytes and return the status and the body of the answer."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        body = await self.reader.readexactly(int(fields.get(b"content-length", b"0")))
        return int(head.split(b" ", 2)[1]), body
