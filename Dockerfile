# The image of one program: docker build --build-arg SERVICE=reader .   (reader, publisher, dump-api, spark-sink, or cli:
# the command `databus` and the Python client)
ARG SERVICE=reader

# ---- build stages ----
FROM python:3.13-slim AS tools
RUN apt-get update && apt-get install -y --no-install-recommends g++ libc6-dev zlib1g-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements/build.txt requirements/
RUN pip install --require-hashes -r requirements/build.txt

# Everything is installed below /install, and copied from there: the image needs no pip. An image's sources do not change,
# so Python need not compare them with their byte code.
FROM tools AS dependencies
ARG SERVICE
COPY requirements/${SERVICE}.txt requirements/
RUN pip install --prefix=/install --no-compile --no-build-isolation --require-hashes -r requirements/${SERVICE}.txt
# Removed: symbols for debuggers, sources of compiled modules, tests, what zstandard has for PyPy; of pyarrow copies of a
# library, and clients of S3 and Flight; of Spark RocksDB, MLlib, Connect, and libraries for other systems than Linux.
# A library that strip has damaged would not load.
RUN cd /install/lib/python3*/site-packages \
 && find . -type d \( -name test -o -name tests \) -prune -exec rm -r {} + \
 && find . -type f -regex '.*\.\(c\|cpp\|h\|hpp\|pyx\|pxd\|pxi\|pyi\)' -delete \
 && rm -rf zstandard/_cffi*.so pyarrow/include pyarrow/src \
      pyarrow/libarrow_python*.so pyarrow/libarrow_python*.so.*.* pyarrow/*_flight* pyarrow/*_s3* \
      pyspark/data pyspark/examples pyspark/jars/connect-repl \
 && find . -regex '.*/pyspark/jars/\(.*-\(osx\|windows\)-.*\|\(rocksdbjni\|breeze\|spire\|cats-kernel\|algebra\|spark-connect\|spark-mllib\|spark-graphx\)[-_].*\)\.jar' -delete \
 && find . -type f -name '*.so*' -exec strip --strip-unneeded {} + \
 && find . -type f -name '*.so*' -print0 | xargs -0 python -c 'import ctypes, sys; [*map(ctypes.CDLL, sys.argv[1:])]' \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash -s /install -p /usr/local .

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
# Of our libraries only those that the program needs.
RUN --mount=type=bind,from=dependencies,source=/install,target=/dependencies \
    PYTHONPATH=$(echo /dependencies/lib/python3*/site-packages) \
    pip install --prefix=/install --no-compile --no-index --find-links=/wheels "databus-${SERVICE}" \
 && find /install -type f -name '*.so' -exec strip --strip-unneeded {} + \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash -s /install -p /usr/local /install/lib

FROM python:3.13-slim AS jars
RUN apt-get update && apt-get install -y --no-install-recommends maven && rm -rf /var/lib/apt/lists/*
COPY services/spark-sink/pom.xml .
RUN mvn -q -B -ntp dependency:copy-dependencies -DoutputDirectory=/jars

FROM eclipse-temurin:17-jre AS jre
# In some versions of this base image the JRE has links to files elsewhere: -L copies these files. The second archive of
# classes is for heaps above 32 GB, and ct.sym for a compiler.
RUN cp -RL /opt/java/openjdk /jre && rm -rf /jre/lib/server/classes_nocoops.jsa /jre/lib/ct.sym /jre/man

# ---- the image: one stage per program ----
# Python's own modules have byte code in the image: a program would compile them at each start, because it may not write.
FROM python:3.13-slim AS python
RUN useradd --uid 10001 --user-group --no-log-init --create-home --home-dir /var/lib/databus databus \
 && install -d -o databus -g databus /var/lib/databus/dumps /var/lib/databus/lake /var/lib/databus/claim-checks \
 && cd /usr/local/lib/python3* && rm -rf idlelib test tkinter turtle* pydoc_data lib-dynload/_test* ../../bin/idle* \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash .

# What a service never runs: package managers and what only they need, accounts, mounts, pip. The package database of Debian
# stays true, scanners read it.
FROM python AS slim
RUN dpkg --purge --force-depends --force-remove-essential --force-remove-protected $(dpkg-query -Wf '${binary:Package}\n' \
      apt 'libapt-pkg*' debian-archive-keyring diffutils login mount openssl passwd perl-base sqv util-linux 2>/dev/null) \
 && cd /usr/local/lib/python3* \
 && rm -rf ensurepip site-packages/pip* ../../bin/pip* ../../bin/*-config ../../include config-* \
      /usr/lib/*/gconv /usr/share/perl5 /usr/share/info /var/cache/debconf /var/log/*

FROM scratch AS runtime
COPY --from=slim / /
ENV LANG=C.UTF-8 PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin
WORKDIR /var/lib/databus

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

# Without an entrypoint and with pip and apt, because it is also for programs of users: docker run IMAGE databus status,
# docker run IMAGE python …
FROM python AS cli
WORKDIR /var/lib/databus
CMD ["databus", "--help"]

# Dependencies and code are separate layers: a new version of the code leaves the large layer of dependencies unchanged.
FROM ${SERVICE}
ARG SERVICE
COPY --from=dependencies /install /usr/local
COPY --from=code /install /usr/local
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
ARG VERSION=dev
LABEL org.opencontainers.image.title="databus-${SERVICE}" \
      org.opencontainers.image.description="MySQL Databus: ${SERVICE}" \
      org.opencontainers.image.version="${VERSION}"
