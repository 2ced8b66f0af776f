"""Routes of the page: files of the package with fixed names, read once."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

PAGE = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


def make_page_router() -> APIRouter:
    """Return the routes of the page."""
    contents = read_page_files()
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def show_page() -> Response:
        return _respond(PAGE, contents[PAGE])

    @router.get("/static/{name}")
    async def show_file(name: str) -> Response:
        if name not in contents:  # names are keys of a dictionary, never paths
            raise HTTPException(404, "There is no such file.")
        return _respond(name, contents[name])

    return router


def read_page_files() -> dict[str, bytes]:
    """Return the files of the page by their name."""
    folder = files("psilearn.app.serve").joinpath("page")
    return {file.name: file.read_bytes() for file in folder.iterdir() if _suffix(file.name) in MEDIA_TYPES}


def _respond(name: str, content: bytes) -> Response:
    return Response(content, media_type=MEDIA_TYPES[_suffix(name)])


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
