"""The Dockerfile and the compose file: rules of a linter, and their commands as a shell script without a container."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import httpx

from psilearn import save_model
from tests.app.serve.clients import rows_problem

ROOT = Path(__file__).parents[3]
TOKEN = "0123456789abcdef"


def read_instructions():
    """Return the instructions of the Dockerfile as pairs of a keyword and its arguments."""
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def as_words(arguments):
    """Return the words of the exec form, ["a", "b"]."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)


def test_the_dockerfile_follows_the_rules_of_a_linter():
    instructions = read_instructions()
    keywords = [keyword for keyword, _ in instructions]
    assert keywords[0] == "FROM" and ":" in instructions[0][1] and not instructions[0][1].endswith(":latest")
    assert keywords.count("USER") == keywords.count("HEALTHCHECK") == keywords.count("ENTRYPOINT") == 1
    user = dict(instructions)["USER"]
    assert user != "root" and keywords.index("USER") < keywords.index("ENTRYPOINT")
    assert keywords.index("USER") > max(i for i, keyword in enumerate(keywords) if keyword in ("RUN", "COPY"))
    for keyword, arguments in instructions:
        assert keyword != "ADD" and "curl" not in arguments and "sudo" not in arguments
        if keyword in ("ENTRYPOINT", "CMD"):
            assert arguments.startswith("[") and as_words(arguments)
        if keyword == "COPY":
            assert all((ROOT / source).exists() for source in arguments.split()[:-1])
    assert TOKEN not in (ROOT / "Dockerfile").read_text()


def test_the_compose_file_requires_a_token_and_drops_rights():
    text = (ROOT / "compose.yaml").read_text()
    assert "${PSILEARN_TOKEN:?" in text and '"127.0.0.1:8000:8000"' in text
    for rule in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", "mem_limit:", "/models:ro"):
        assert rule in text


def test_the_commands_run_as_a_shell_script(tmp_path):
    save_model(rows_problem()[2], tmp_path / "model.psi")
    instructions = dict(read_instructions())
    command = [*as_words(instructions["ENTRYPOINT"]), *as_words(instructions["CMD"])]
    replaced = {"/models/model.psi": str(tmp_path / "model.psi"), "/jobs": str(tmp_path / "jobs"), "8000": "0"}
    words = [replaced.get(word, word) for word in command]
    start = f"{shlex.quote(sys.executable)} -c 'import sys; from psilearn.app.cli import app; app(sys.argv[1:])'"
    script = f"exec {start} {shlex.join(words[1:])}"
    environment = {**os.environ, "PSILEARN_TOKEN": TOKEN}
    process = subprocess.Popen(["sh", "-euc", script], stderr=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stderr.readline().strip().replace("0.0.0.0", "127.0.0.1")
        check = as_words(instructions["HEALTHCHECK"].partition("CMD")[2])[2]
        health = check.replace("http://127.0.0.1:8000", url)
        for _ in range(300):
            if subprocess.run([sys.executable, "-c", health], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        assert httpx.get(f"{url}/v1/models").status_code == 401
        answer = httpx.get(f"{url}/v1/models", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.json()["models"][0]["name"] == "model"
    finally:
        process.terminate()
        process.communicate(timeout=60)
