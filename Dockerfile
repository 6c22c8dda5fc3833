# Two stages: one builds, the other is nothing but the programs, the shared libraries they load and the time zones.
# There is no shell, no package manager and no user with a name to become.
#
#   docker build -t ebbgate .        or  buildah bud --format docker -t ebbgate .
#   docker run --rm -p 7370:7370 -e EBBGATE_LISTEN=0.0.0.0:7370 -e EBBGATE_ALLOW_PLAINTEXT=true ebbgate
FROM docker.io/library/debian:bookworm-slim AS build
WORKDIR /src
COPY deploy/install-dependencies.sh deploy/
RUN deploy/install-dependencies.sh && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt CMakePresets.json ./
COPY cmake cmake
COPY proto proto
COPY server server
COPY client client
RUN cmake --preset release -DEBBGATE_TESTS=OFF -DEBBGATE_BENCHMARKS=OFF && cmake --build build/release
COPY deploy deploy
RUN deploy/collect-image.sh build/release/bin /image

FROM scratch
COPY --from=build /image /
# By number, so that Kubernetes' runAsNonRoot can tell that it is not root.
USER 65532:65532
# Calls are answered on loopback unless told otherwise: what else shares the network, a sidecar's pod for one, sees
# them; setting EBBGATE_LISTEN (with TLS, or EBBGATE_ALLOW_PLAINTEXT) opens the port to others. Metrics and health are
# for others by nature.
ENV EBBGATE_LIMITS=/etc/ebbgate/limits.yaml EBBGATE_OPS_LISTEN=0.0.0.0:7371
EXPOSE 7370 7371
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/usr/bin/ebbgate", "health"]
ENTRYPOINT ["/usr/bin/ebbgated"]
