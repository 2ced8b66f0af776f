"""A real browser and a server in a thread, for the tests of the page."""

import shutil
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from psilearn.app.serve.server_process import bind_socket


def find_browser():
    """Return the path of Chromium; skip the test with the reason if it or Playwright is missing."""
    pytest.importorskip("playwright", reason="browser tests need playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for found in map(shutil.which, names) if found), None)
    if path is None:
        pytest.skip("browser tests need Chromium (apt-get install chromium)")
    return path


@contextmanager
def running(app):
    """Serve an application in a thread, and yield its address."""
    listener = bind_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def opened_browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(browser, url, width=1200, dark=False):
    """Open a page; fail if it logs an error, violates its policy or asks another site."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: None if _is_local(request.url, url) else errors.append(request.url))
    page.goto(url)
    yield page
    context.close()
    assert errors == []


def _is_local(address, url):
    base = url.split("?")[0].rstrip("/")
    return address.startswith((base, "data:", "blob:"))
