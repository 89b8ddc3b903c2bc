# The programs, not as root. Build from the repository's top folder, with BuildKit (the default of newer engines):
#   docker build -f docker/programs.Dockerfile -t cdc .
#   docker build -f docker/programs.Dockerfile -t cdc-spark --target spark .       # with the audit, seed and lake
# BASE is an image of Debian 12 or newer with Python 3.11 or newer, its venv and pip.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY cdc cdc
# Without pip, which a container never needs, and with the modules compiled, which it can't do itself.
RUN python3 -m venv /opt/cdc \
 && /opt/cdc/bin/pip install --no-cache-dir --no-compile '.[web]' \
 && /opt/cdc/bin/pip uninstall --yes --quiet setuptools pip \
 && python3 -m compileall -q /opt/cdc/lib

FROM ${BASE} AS base
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin cdc
ENV PATH=/opt/cdc/bin:$PATH PYTHONDONTWRITEBYTECODE=1
COPY docker/health.py /usr/local/bin/cdc-health
WORKDIR /home/cdc
USER 10001:10001
# Whether the process works, by the profile's metrics.port: a program that waits for a server is healthy. A check of the
# servers is "cdc-health /readyz".
ENV CDC_METRICS_PORT=9464
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s CMD ["python3", "/usr/local/bin/cdc-health", "/livez"]

# cdc-audit, cdc-seed and cdc-lake. Spark's connector for Kafka is put among Spark's own jars: a container may have no way
# to Maven Central. Spark fetches the packages of Delta Lake and Iceberg at the first start of cdc-lake, into the home
# folder. Spark 4.2 would have no Iceberg.
FROM base AS spark
USER root
RUN apt-get update -q && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/cdc /opt/cdc
RUN --mount=type=bind,from=build,source=/source,target=/source,rw \
    --mount=type=bind,source=docker/connector.py,target=/tmp/connector.py \
    python3 -m venv --upgrade-deps /opt/cdc \
 && /opt/cdc/bin/pip install --no-cache-dir --no-compile '/source[spark]' 'pyspark~=4.1.0' \
 && CDC_CACHE=/tmp/cache /opt/cdc/bin/python /tmp/connector.py && rm -rf /tmp/cache /root/.ivy2* \
 && /opt/cdc/bin/pip uninstall --yes --quiet setuptools pip \
 && python3 -m compileall -q /opt/cdc/lib
USER 10001:10001

# The last stage is the one that is built unless another is asked for.
FROM base AS programs
COPY --from=build /opt/cdc /opt/cdc
