# The image of one program: docker build --build-arg SERVICE=reader .   (reader, publisher, dump-api, spark-sink, or cli:
# the command `databus` and the Python client)
ARG SERVICE=reader

# ---- build stages: the image gets only wheels, jars and the JRE of them ----
FROM python:3.13-slim AS tools
RUN apt-get update && apt-get install -y --no-install-recommends g++ libc6-dev zlib1g-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements/build.txt requirements/
RUN pip install --require-hashes -r requirements/build.txt

FROM tools AS dependencies
ARG SERVICE
COPY requirements/${SERVICE}.txt requirements/
RUN pip wheel --no-build-isolation --require-hashes -r requirements/${SERVICE}.txt -w /wheels

FROM tools AS code
COPY libs/binlog libs/binlog
RUN pip wheel --no-build-isolation --no-deps -w /wheels ./libs/binlog
COPY libs/wire libs/wire
RUN pip wheel --no-build-isolation --no-deps -w /wheels ./libs/wire
COPY libs/core libs/core
COPY libs/changes libs/changes
COPY libs/messages libs/messages
COPY libs/spark libs/spark
COPY libs/client libs/client
RUN pip wheel --no-build-isolation --no-deps -w /wheels ./libs/core ./libs/changes ./libs/messages ./libs/spark ./libs/client
ARG SERVICE
# services/reader, …, libs/cli
COPY */${SERVICE} program
RUN pip wheel --no-build-isolation --no-deps -w /wheels ./program

FROM python:3.13-slim AS jars
RUN apt-get update && apt-get install -y --no-install-recommends maven && rm -rf /var/lib/apt/lists/*
COPY services/spark-sink/pom.xml .
RUN mvn -q -B -ntp dependency:copy-dependencies -DoutputDirectory=/jars

FROM eclipse-temurin:17-jre AS jre
# In some versions of this base image the JRE has links to files elsewhere: -L copies these files.
RUN cp -RL /opt/java/openjdk /jre

# ---- the image: one stage per program ----
FROM python:3.13-slim AS runtime
RUN useradd --uid 10001 --user-group --no-log-init --create-home --home-dir /var/lib/databus databus \
 && install -d -o databus -g databus /var/lib/databus/dumps /var/lib/databus/lake /var/lib/databus/claim-checks
WORKDIR /var/lib/databus
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

FROM runtime AS reader
ENTRYPOINT ["databus-reader"]
EXPOSE 9101

FROM runtime AS publisher
ENTRYPOINT ["databus-publisher"]
EXPOSE 9102

FROM runtime AS dump-api
ENTRYPOINT ["databus-dump-api"]
EXPOSE 8080

FROM runtime AS spark-sink
COPY --from=jre /jre /opt/java/openjdk
ENV JAVA_HOME=/opt/java/openjdk PATH=/opt/java/openjdk/bin:$PATH
COPY --from=jars /jars /opt/databus/jars
COPY --chmod=755 services/spark-sink/entrypoint.sh /opt/databus/
# what a SparkApplication runs
COPY services/spark-sink/src/databus_spark_sink/__main__.py /opt/databus/main.py
ENTRYPOINT ["/opt/databus/entrypoint.sh"]
EXPOSE 9103

# Without an entrypoint, because it is also for programs of users: docker run IMAGE databus status, docker run IMAGE python …
FROM runtime AS cli
CMD ["databus", "--help"]

# Dependencies and code are separate layers: a new version of the code leaves the large layer of dependencies unchanged.
# The second pip installs the program, and of our libraries those that it needs.
FROM ${SERVICE}
ARG SERVICE
RUN --mount=type=bind,from=dependencies,source=/wheels,target=/wheels \
    pip install --no-cache-dir --root-user-action=ignore --no-index --no-deps /wheels/*.whl
RUN --mount=type=bind,from=code,source=/wheels,target=/wheels \
    pip install --no-cache-dir --root-user-action=ignore --no-index --find-links=/wheels "databus-${SERVICE}"
USER 10001:10001
ARG VERSION=dev
LABEL org.opencontainers.image.title="databus-${SERVICE}" \
      org.opencontainers.image.description="MySQL Databus: ${SERVICE}" \
      org.opencontainers.image.version="${VERSION}"
