# One image for every command: /criticizer-worker, /criticizer, /criticizer-starter and
# /complaint-rewrite, static, without a base image. /sbom lists their modules; /triage has the
# scripts for an incident, to be copied out.
#
#   docker build -t criticizer .
#
# The p4 command is distributed by Perforce only. Put it into DIRECTORY as
# usr/local/bin/p4, with its libraries, and
#
#   docker build -t criticizer --build-context p4=DIRECTORY .
#
# With --build-arg P4=sample, p4 is a stand-in that reads a sample depot.

ARG P4=none

# Compiles for any platform on the platform of the engine.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN export CGO_ENABLED=0 GOARCH=$TARGETARCH \
 && go build -trimpath -o /out/criticizer-worker ./worker \
 && go build -trimpath -o /out/criticizer ./criticizer \
 && go build -trimpath -o /out/criticizer-starter ./starter \
 && go build -trimpath -o /out/ ./rewrite/cmd/complaint-rewrite \
 && mkdir -p /root-of-image/tmp /root-of-image/var/lib/criticizer/p4 /root-of-image/var/lib/criticizer/spool \
 && chmod 1777 /root-of-image/tmp \
 && chmod -R 0700 /root-of-image/var/lib/criticizer && chown -R 65532:65532 /root-of-image/var/lib/criticizer
RUN mkdir /root-of-image/sbom \
 && for command in criticizer-worker criticizer criticizer-starter complaint-rewrite; do \
    go run -C tools/lint github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod bin -json -noserial -notimestamp \
      -output /root-of-image/sbom/$command.cdx.json /out/$command || exit 1; \
    done

# The stand-ins for Perforce and for the model, for the sample of docker-compose.yml.
FROM build AS build-sample
ARG TARGETARCH
RUN export CGO_ENABLED=0 GOARCH=$TARGETARCH \
 && go build -trimpath -o /sample/bin/p4 ./p4/p4sim && go build -trimpath -o /sample/ ./tools/standin \
 && mkdir /sample/share && cp tools/devstack/harbor.txtar /sample/share/ \
 && printf 'P4SIM_DEPOT=/usr/local/share/harbor.txtar\nP4SIM_STATE=/tmp/p4sim\nP4SIM_MAIL_DOMAIN=example.com\n' > /sample/bin/p4sim.conf

FROM scratch AS standin
COPY --from=build-sample /sample/standin /standin
USER 65532:65532
ENTRYPOINT ["/standin"]

FROM scratch AS p4-none

FROM scratch AS p4-sample
COPY --from=build-sample /sample/bin /usr/local/bin
COPY --from=build-sample /sample/share /usr/local/share

# Replaced by --build-context p4=DIRECTORY.
FROM p4-$P4 AS p4

FROM scratch
LABEL org.opencontainers.image.title=criticizer org.opencontainers.image.description="Reviews Perforce changelists" \
      com.criticizer.sbom=/sbom
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /root-of-image /
COPY --from=build /out /
COPY tools/triage /triage
COPY --from=p4 / /
USER 65532:65532
ENV PATH=/:/usr/local/bin
# Tickets, server fingerprints and the spool: the only files that are written.
VOLUME /var/lib/criticizer
HEALTHCHECK --interval=10s --timeout=12s --start-period=30s CMD ["/criticizer-worker", "--healthy"]
ENTRYPOINT ["/criticizer-worker"]
