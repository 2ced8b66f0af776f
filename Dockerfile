# The service of psilearn. Build: docker build -t psilearn . — run: see compose.yaml and docs/serve.md.
FROM python:3.12-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1

RUN useradd --create-home --uid 10001 psilearn && mkdir /models /jobs && chown psilearn /jobs

COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
COPY packages/psilearn-chem /source/packages/psilearn-chem
RUN pip install "/source[app]" /source/packages/psilearn-chem && rm -r /source

USER psilearn
WORKDIR /home/psilearn
EXPOSE 8000
VOLUME ["/jobs"]

HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]

# A token is required, because the service listens on all addresses of the container: set PSILEARN_TOKEN.
ENTRYPOINT ["psilearn", "serve", "--host", "0.0.0.0", "--port", "8000", "--jobs", "/jobs"]
CMD ["/models/model.psi"]
