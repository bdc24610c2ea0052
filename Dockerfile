# ksched's image: built in one stage, run in another that has neither compiler nor package manager's caches.

FROM python:3.11-slim AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY ksched ksched
RUN python -m venv /opt/ksched \
    && /opt/ksched/bin/pip install --no-cache-dir . \
    && /opt/ksched/bin/python -m compileall -q /opt/ksched/lib

FROM python:3.11-slim
# The native module is linked with OpenMP.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/ksched /opt/ksched
ENV PATH=/opt/ksched/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number, so that a pod's runAsNonRoot can be checked.
USER 65532:65532
ENTRYPOINT ["ksched"]
CMD ["run"]
