# syntax=docker/dockerfile:1

# Both stages use one Python minor version: compiled wheels and bytecode of another would not load.
# Tags are pinned to a release; a release is built on its digest too (.github/workflows/release.yaml).
ARG PYTHON_IMAGE=python:3.13.9-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
RUN python -m venv /opt/modelhooks

# Dependencies before code, so that a change of the code reuses this layer.
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN /opt/modelhooks/bin/pip install --require-hashes --no-deps --only-binary=:all: -r requirements/runtime.txt \
 && pip install --require-hashes --no-deps --only-binary=:all: --target /opt/build -r requirements/build.txt

COPY pyproject.toml README.md LICENSE ./
COPY app app
RUN PYTHONPATH=/opt/build pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/modelhooks/bin/pip install --no-deps --no-index /wheels/*.whl \
 && /opt/modelhooks/bin/pip uninstall --yes pip \
 && /opt/modelhooks/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/modelhooks/lib

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="modelhooks" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN python -m pip uninstall --yes --root-user-action=ignore pip
COPY --from=build /opt/modelhooks /opt/modelhooks
# The root file system may be read-only: nothing is written, bytecode least of all.
ENV PATH=/opt/modelhooks/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1
WORKDIR /
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["modelhooks"]
CMD ["serve"]
